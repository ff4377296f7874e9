# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# (counterexample)=
# # The counterexample: one unit that nothing moves
#
# Theorem 3 promises critical points. This chapter shows how little that can be. On a network with a single rectified unit and
# one fairness constraint every method of the second paper, its own included, stays where it starts, arbitrarily far from the
# feasible set. The paper proves it; here the package's optimisers are run, the algebra is done in fractions, and then
# the question is asked that the paper leaves: what does get away, and at what price?
#
# ```{admonition} Objectives
# :class: tip
# After this chapter you can
#
# - write down the problem, its solution and its multiplier, and verify the KKT conditions by hand;
# - prove that a function is not weakly convex by exhibiting two points for every constant;
# - explain why a drift of exactly 0.0, not of about 0, is what has to be measured;
# - say what randomised smoothing, a leak, a new initialisation and random probing do on a flat side, what each costs, and where
#   each of them fails.
# ```

# %% tags=["parameters"]
profile = "quick"
seed = 0
methods = (
    "spbm",
    "ssl-alm",
    "ssw",
    "adam",
    "smoothing",
    "leaky",
    "re-initialisation",
    "restart",
    "weight-decay",
)
starts = None
seeds = None
steps = None
frozen_seeds = None
frozen_steps = None
constants = None
batch = 32
lr = 0.02
tolerance = 0.01

# %% tags=["hide-input"]
from myst_nb import glue

from fairfront import runs
from fairfront.plotting import present
from fairfront.studies import counterexample as study

parameters = study.Parameters(
    profile=profile,
    seed=seed,
    methods=methods,
    starts=starts,
    seeds=seeds,
    steps=steps,
    frozen_seeds=frozen_seeds,
    frozen_steps=frozen_steps,
    constants=constants,
    batch=batch,
    lr=lr,
    tolerance=tolerance,
)
result = runs.compute(study, parameters)
tables = result.tables
for name, text in study.facts(tables, parameters).items():
    glue(name, text, display=False)

# %% [markdown]
# ## The problem
#
# A thousand samples have the input $z = 1$; a hundred of them have the label 1, the others 0. The network is one unit,
# $\hat y = [w z + b]_+$, so that all depends on $x = w + b$. The objective is the mean squared error. The constraint weighs the errors of
# the two label groups by $\tfrac34$ and $\tfrac14$ and bounds the result by $\tfrac14$:
#
# $$
# \begin{aligned}
# f(x) &= \tfrac1{10} \bigl( [x]_+ - 1 \bigr)^2 + \tfrac9{10} [x]_+^2
#       = \begin{cases} x^2 - \tfrac15 x + \tfrac1{10} & x \ge 0 \\ \tfrac1{10} & x < 0 \end{cases} \\
# g(x) &= \tfrac34 \bigl( [x]_+ - 1 \bigr)^2 + \tfrac14 [x]_+^2 - \tfrac14
#       = \begin{cases} x^2 - \tfrac32 x + \tfrac12 & x \ge 0 \\ \tfrac12 & x < 0 \end{cases}
# \end{aligned}
# $$ (eq-counterexample)

# %% tags=["remove-cell"]
glue("figure_landscape", study.figure_landscape(tables, parameters), display=False)

# %% [markdown]
# ```{glue:figure} figure_landscape
# :name: fig-counterexample-landscape
# :alt: Three panels against x from -1.5 to 1.5. Objective, constraint and four Lagrangians are constant on the shaded side x below 0; right of 0 they are valleys. The feasible set from one half to 1 is shaded, and a star marks the solution at its left end.
#
# The paper's Figure 10: objective, constraint, and the Lagrangian for four pairs of $\lambda$ and $p$. Grey: the flat side; green: the
# feasible set. Data: {glue:text}`cex_setting`.
# ```
#
# Left of 0 the three functions are constant, whatever $\lambda$ and $p$ are: over {glue:text}`cex_flat_cases` values, for multipliers from 0
# to 100, penalties from 0.01 to 10 and both penalty-barrier functions, no two values of one function differ in any digit.
#
# ````{prf:proposition} Proposition 4 of the second paper
# :label: prop-counterexample-solution
#
# The feasible set is $[\tfrac12, 1]$, the one solution $x^\star = \tfrac12$ with $f(x^\star) = \tfrac14$, and the KKT conditions hold with
# $\lambda^\star = \tfrac85$.
# ````
#
# ````{prf:proof}
# For $x < 0$ $g = \tfrac12 > 0$; for $x \ge 0$ $g(x) = (x - \tfrac12)(x - 1)$. On $[\tfrac12, 1]$ $f' (x) = 2x - \tfrac15 > 0$. At $x^\star$
# $f' = \tfrac45$ and $g' = -\tfrac12$, so that $f' + \lambda g' = 0$ for $\lambda = \tfrac85 \ge 0$, and $\lambda g = 0$.
# ````
#
# ## What the problem is, and is not
#
# ````{prf:proposition} Proposition 5 of the second paper
# :label: prop-counterexample-weak
#
# Neither $f$ nor $g$ is weakly convex: for no $C$ is $h(x) + \tfrac C2 x^2$ convex.
# ````
#
# ````{prf:proof}
# Let $-s$ be the slope on the right of 0, $s = \tfrac15$ for $f$ and $\tfrac32$ for $g$. Between $-t$ and $t$ the midpoint is 0, and
#
# $$ h(0) - \tfrac12 \bigl( h(-t) + h(t) + C t^2 \bigr) = \tfrac12 \bigl( s t - (C + 1) t^2 \bigr), $$ (eq-counterexample-witness)
#
# which is positive for $t = \tfrac{s}{2(C + 1)}$: there it is $\tfrac{s^2}{8 (C + 1)}$. A convex function would have it $\le 0$.
# ````

# %% tags=["remove-cell"]
glue("figure_weak", study.figure_weak(tables, parameters), display=False)

# %% [markdown]
# ```{glue:figure} figure_weak
# :name: fig-counterexample-weak
# :alt: Left, the constraint plus five x squared with its corner at 0; the chord between two points at equal distance from 0 passes below the corner. Right, on logarithmic axes, the excess of the corner over the chord falls like one over C and never reaches 0, for f and g.
#
# Left: two points against weak convexity with $C = 10$. Right: the excess {eq}`eq-counterexample-witness` against $C$. Data:
# {glue:text}`cex_setting`.
# ```
#
# For {glue:text}`cex_weak_cases` constants up to $10^{12}$ both witnesses were evaluated in fractions; the least excess is
# {glue:text}`cex_weak_least`, and it is exact. So methods whose guarantees assume weak convexity, among them SSw and SSL-ALM,
# have none here.
#
# ````{prf:proposition} Proposition 6 of the second paper
# :label: prop-counterexample-instance
#
# The problem is an instance of the general one: $f$ and $g$ are the expectations of their mini-batch means, which are locally Lipschitz and
# definable.
# ````
#
# That the means over all mini-batches are $f$ and $g$ holds in fractions, without a remainder ({glue:text}`cex_expectation_cases` cases);
# difference quotients on $[-3, 3]$ reach {glue:text}`cex_lipschitz` of the Lipschitz constant; and on either side of 0 every
# mini-batch's functions are quadratics. Two pieces of polynomials are semialgebraic, hence definable: that last step
# is read off the formula, no number shows it.

# %% tags=["hide-input"]
present(study.table_checks(tables), digits=3)

# %% tags=["remove-cell"]
# NBVAL_CHECK_OUTPUT
checks = tables["checks"]
assert checks.holds.all(), "a statement is violated"
print("every statement holds:", bool(checks.holds.all()))
weak = tables["weak"]
print("excess of the first witness for g:", f"{weak[weak.function == 'g'].excess.iloc[0]:.4f}")

# %% [markdown]
# ## Nothing moves
#
# ````{prf:lemma} Lemma 25 of the second paper
# :label: lem-counterexample-flat
#
# On $\{ w + b < 0 \}$ the Clarke subdifferentials of $\bar f$, $\bar g$ and $\bar{\mathcal{L}}_p(\cdot, \lambda)$ are $\{0\}$, for every
# mini-batch, $\lambda$ and $p$.
# ````
#
# ````{prf:proposition} Proposition 3 of the second paper
# :label: prop-counterexample-frozen
#
# From $x^0 = w^0 + b^0 < 0$ the iterates of SPBM, SSL-ALM and SSw, for any $\mu \ge 0$ and $\delta \in [0, 1)$, and of every scheme
# $(w, b)^{k+1} = (w, b)^k + h((w, b)^k)$ with $h = 0$ where all subgradients vanish, never move. Their distance to the feasible set is
# $\tfrac12 - x^0$ for every $k$, and can be made as large as one likes.
# ````
#
# The proof is an induction: the direction is 0, the centre $s$ is where $x$ is, so the next direction is 0. Adam belongs to the schemes: it
# divides a first moment of exactly 0 by $\sqrt{0} + \epsilon$. Therefore the drift to measure, the largest
# $\lVert (w, b)^k - (w, b)^0 \rVert$ over a run, is not small. It is 0.0, or the proposition is false. Below, the package's own optimisers train
# the network on the samples in single precision, from {glue:text}`cex_starts` starts each. The last column is the control: from $x^0 = 0.2$,
# where there is a slope, the same code moves.

# %% tags=["hide-input"]
present(study.table_frozen(tables), digits=3)

# %% tags=["remove-cell"]
# NBVAL_CHECK_OUTPUT
stayed = study.table_frozen(tables)
assert (stayed["largest drift from x < 0"] == 0.0).all() and (stayed["drift from x = 0.2"] > 0).all()
print("largest drift of any method from x < 0:", float(stayed["largest drift from x < 0"].max()))
print("every method moves from x = 0.2:", bool((stayed["drift from x = 0.2"] > 0).all()))

# %% tags=["remove-cell"]
glue("figure_frozen", study.figure_frozen(tables, parameters), display=False)

# %% [markdown]
# ```{glue:figure} figure_frozen
# :name: fig-counterexample-frozen
# :alt: Three panels against the step. Left, four solid lines lie on each other at minus 1; dashed lines from 0.2 go up into the shaded feasible band, except Adam's. Middle, multipliers of SPBM and SSL-ALM rise by orders of magnitude on the flat side. Right, SPBM's penalty falls to the bottom of its box.
#
# The paper's Figure 11: one run of each method from $x^0 = -1$ (solid) and from the control's start, 0.2 (dashed), with the first variant
# of each method in the table. Green: the feasible set. Data: {glue:text}`cex_setting_runs`.
# ```
#
# The drift of all {glue:text}`cex_runs` combinations of variant and start is {glue:text}`cex_drift`; from the control's start it is at least
# {glue:text}`cex_control`. The dual variables do move: SPBM's multiplier rises to {glue:text}`cex_lam_end` and its penalty falls to
# {glue:text}`cex_p_end`. They multiply a slope of 0. Adam's dashed line ends at {glue:text}`cex_adam_end`: without a constraint the minimum of $f$
# is at $x = \tfrac1{10}$, so near the edge that noise can throw a run over it; a negative number here is a unit that died in
# training.
#
# ## Five ways out
#
# Each of them is run with SPBM (Adam, learning rate {glue:text}`cex_lr` with warm-up and cosine unless the variant says SGD), from every start, with several
# seeds.
#
# 1. **Randomised smoothing.** Gradients are taken at $(w, b) + \sigma u$ with $u \sim N(0, I)$, four at a time; $\sigma$ falls to 0, or stays.
# 2. **A leak.** The unit is $\max(x, a x)$ with $a = 0.1$ or $0.01$. Below 0 the constraint is then larger than $\tfrac12$, so that feasible set and
#    solution are the same.
# 3. **Re-initialisation.** A run that has not moved for 20 steps is drawn again: afresh, $(w, b) \sim N(0, I)$, or around its present point.
# 4. **A feasibility restart.** Such a run probes random points around it for a smaller constraint, on one mini-batch; if none of 16 (or 4) is better
#    it doubles the radius. Values are enough, no gradient is asked for.
# 5. **Weight decay** (AdamW), which is no subgradient of anything here and does move.
#
# Variants with *duals kept* do not start $\lambda$ and $p$ anew at the new point.

# %% tags=["remove-cell"]
glue("figure_escapes", study.figure_escapes(tables, parameters), display=False)

# %% [markdown]
# ```{glue:figure} figure_escapes
# :name: fig-counterexample-escapes
# :alt: A table of coloured cells, one row a variant and one column a start. Re-initialisation afresh and restarts with a doubling radius are bright in every column; smoothing is bright near 0 and dark far away, with sd 3 dark everywhere; the leak is bright up to about minus 10; weight decay is dark.
#
# The share of runs that end feasible. In the cells: median gradients (+ probes) up to the first feasible step of the runs that had one;
# "still": no run moved at all; "lost": they moved, and never became feasible. Data: {glue:text}`cex_setting_escapes`.
# ```

# %% tags=["hide-input"]
present(study.table_costs(tables))

# %% tags=["remove-cell"]
glue("figure_costs", study.figure_costs(tables, parameters), display=False)

# %% [markdown]
# ```{glue:figure} figure_costs
# :name: fig-counterexample-costs
# :alt: On logarithmic axes, evaluations against the distance of the start from 0. Re-initialisation afresh is level; restarts with a doubling radius are cheapest near 0 and rise for far starts; the leak rises with the distance; smoothing costs the most and its lines end early.
#
# What it cost to become feasible: mini-batch evaluations (a gradient counts as two, a probe as one), medians over the runs that did.
# Data: {glue:text}`cex_setting_escapes`.
# ```
#
# ## Why each works, and why it fails
#
# **Smoothing** sees as far as its noise reaches. $x$ is perturbed with standard deviation $\sigma\sqrt2$; from $x^0 = -10$ a perturbation with
# $\sigma = 0.3$ never lands on the other side, and the run is as still as without. More noise is no remedy: the smoothed Lagrangian averages over
# the steep wall on the right of the valley as well, and then points *away*.

# %% tags=["remove-cell"]
glue("figure_smoothing", study.figure_smoothing(tables, parameters), display=False)

# %% [markdown]
# ```{glue:figure} figure_smoothing
# :name: fig-counterexample-smoothing
# :alt: A plane of x and the standard deviation of the perturbation in three colours. Descent goes right only in a wedge between small and large deviations; above it, it goes left; below it, it sees nothing. Dotted lines of equal chance run through the wedge.
#
# Where descent on the smoothed Lagrangian goes, by quadrature, for $\lambda = 10$ and $p = 0.1$, which is where the duals of a stuck run end; and the
# chance that a perturbed point has a slope at all. Data: {glue:text}`cex_setting`.
# ```
#
# At $x = -1$ the turning point is at $\sigma =$ {glue:text}`cex_smooth_turning`. So $\sigma = 3$ works from {glue:text}`cex_smooth_large`, and $\sigma = 1$ that
# stays from {glue:text}`cex_smooth_kept`. With $\sigma$ falling from 1 to 0 every run passes through the wedge on its way, and those at
# a distance that the noise can bridge are carried over (down to {glue:text}`cex_smooth_middle`), late: at the median after {glue:text}`cex_smooth_middle_cost` gradients, against
# {glue:text}`cex_smooth_cost` with $\sigma = 0.3$, which works down to {glue:text}`cex_smooth_small`. One has to know the distance beforehand.
#
# **A leak** gives every point a slope, of order $a$. What it cannot give is time: Adam moves each of $w$ and $b$ by no more than its learning rate
# a step, here $x$ by about {glue:text}`cex_reach` in a whole run. It works down to {glue:text}`cex_leaky`. With SGD far starts are fast, because the slope
# grows with the distance, and dangerous for the same reason: meanwhile the multiplier climbs, and the step across 0 is taken at the slope of the
# other side (with $a = 0.01$ {glue:text}`cex_leaky_diverged` runs diverged). It also changes the model, which here costs nothing, and in a deeper network is another function.
#
# **Re-initialisation afresh** forgets the start, and its cost does not depend on it: every draw is alive with probability $\tfrac12$
# ({glue:text}`cex_redraw_cost` gradients, down to {glue:text}`cex_redraw`). That is a property of the initial distribution, not of the method; and in a network with other, living
# units it would throw away what they have learned. Drawn *around the present point*, a run is a random walk with unit steps: from afar it takes about
# $|x^0|^2$ of them (down to {glue:text}`cex_redraw_around`).
#
# **The feasibility restart** finds the valley from every start with $\log_2 |x^0|$ doublings ({glue:text}`cex_probe_probes` probes and {glue:text}`cex_probe_cost` gradients at the median, down to
# {glue:text}`cex_probe`): it uses values, which a flat side does not hide. With a fixed radius it fails beyond it ({glue:text}`cex_probe_fixed`), and the valley is a strip of
# width 1.5 in the direction $w + b$: the share of probes that hit it falls like $1/|x^0|$, which the last column shows. In many
# dimensions a feasible *ball* would be out of reach for it. Runs that it brought to feasibility and that did not end there: {glue:text}`cex_probe_left`; SPBM's
# own noise around the boundary, which all escapes share.
#
# **Weight decay** shows that to move is not enough: $(w, b)$ shrinks towards 0 and $x$ with it, from below, without ever getting there. The best run ends at
# $x =$ {glue:text}`cex_decay_best`; feasible: {glue:text}`cex_decay_feasible`.
#
# What this adds to the paper's conclusion: the obstacle is not that the problem is hard (a few dozen evaluations of $g$ solve it), but that
# subgradients at one point know nothing of other points. What cannot be concluded is that one of these remedies would do for
# networks at large. They were tried in two dimensions, on one unit, with the feasible set on one side.
#
# ## What holds

# %% tags=["hide-input"]
present(runs.verdicts(result))

# %% [markdown]
# ## Exercises
#
# ```{exercise-start} How long does a leak take?
# :label: ex-counterexample-leak
# ```
# Follow the gradient flow of $f$ alone with a leak $a$ from $x^0 = -u$. When does it reach 0? What becomes of that time as $a \to 0$?
# ```{exercise-end}
# ```

# %% [markdown]
# ```{solution-start} ex-counterexample-leak
# :class: dropdown
# ```
# Below 0 the slope is $2 a^2 x - \tfrac a5$, and $x = w + b$ moves at minus twice that, $\dot x = -4 a^2 x + \tfrac25 a$. So $u$ reaches 0
# after $\ln(1 + 10\, a u) / (4 a^2)$, about $5u/(2a)$ for small $a$: the leak's slope is the speed. The cell compares the formula with small
# explicit steps.

# %% tags=["solution"]
import math


def crossing_time(a: float, u: float, h: float = 1e-3) -> float:
    """Return when explicit Euler steps from -u reach 0."""
    x, t = -u, 0.0
    while x < 0:
        x, t = x + h * (-4 * a * a * x + 0.4 * a), t + h
    return t


errors = []
for a, u in ((0.1, 1.0), (0.1, 10.0), (0.05, 3.0)):
    exact = math.log(1 + 10 * a * u) / (4 * a * a)
    errors.append(abs(crossing_time(a, u) / exact - 1))
    print(f"a = {a}, u = {u}: {exact:.2f}")
print("explicit steps agree within 1 %:", bool(max(errors) < 0.01))

# %% [markdown]
# ```{solution-end}
# ```
#
# ```{exercise-start} Does a leak make the problem weakly convex?
# :label: ex-counterexample-leak-convexity
# ```
# The leaky unit has a slope everywhere. Is $g$ weakly convex then? For which leaks?
# ```{exercise-end}
# ```

# %% [markdown]
# ```{solution-start} ex-counterexample-leak-convexity
# :class: dropdown
# ```
# No. At 0 the slope of $g$ jumps from $-\tfrac32 a$ down to $-\tfrac32$, a concave corner for every $a < 1$, which no parabola straightens. Only
# $a = 1$, no rectifier at all, removes it. So it is not weak convexity that lets a method escape, but a slope.

# %% tags=["solution"]
from dataclasses import replace
from fractions import Fraction

from fairfront.theory.single_unit import COUNTEREXAMPLE


def excess(leak: float, constant: int, t: Fraction) -> Fraction:
    """Return the constraint's value at 0 less the mean at -t and t, with a parabola added."""
    unit = replace(COUNTEREXAMPLE, leak=leak)
    ends = [unit.exact(x)[1][0] + Fraction(constant, 2) * t * t for x in (-t, t)]
    return unit.exact(Fraction(0))[1][0] - sum(ends) / 2


tried = [(leak, c) for leak in (0.0, 0.1, 0.5) for c in (1, 100, 10000)]
positive = [excess(leak, c, Fraction(1, 8 * (c + 2))) > 0 for leak, c in tried]
print("a midpoint above the chord for every leak < 1 and C tried:", all(positive))
print("and for the leak 1:", excess(1.0, 1, Fraction(1, 8)) > 0)

# %% [markdown]
# ```{solution-end}
# ```
#
# ```{exercise-start} Luck at the start
# :label: ex-counterexample-luck
# ```
# With which probability is a unit with $(w, b) \sim N(0, I)$ on the flat side? How many draws until it is not, on average? And with which probability does one
# draw around the point $x = -10$ get off it?
# ```{exercise-end}
# ```

# %% [markdown]
# ```{solution-start} ex-counterexample-luck
# :class: dropdown
# ```
# $w + b$ is normal with mean 0, so the probability is $\tfrac12$ and the number of draws geometric with mean 2. Around $x = -10$ it is the normal
# distribution function at $-10/\sqrt2$, which is nothing that one waits for; only because the draws add up to a walk does that variant get anywhere.

# %% tags=["solution"]
import numpy as np
from scipy.special import ndtr

draws = np.random.default_rng(0).normal(size=(100_000, 2)).sum(1)
print("share on the flat side:", f"{(draws < 0).mean():.2f}")
print("one draw around x = -10 gets off with probability", f"{ndtr(-10 / np.sqrt(2)):.1e}")

# %% [markdown]
# ```{solution-end}
# ```
