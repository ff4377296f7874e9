"""Differential equations as constrained training problems of physics-informed networks."""
