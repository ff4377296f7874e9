# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# (ablations)=
# # Ablations: what each part of SPBM is for
#
# SPBM adds three things to the penalty-barrier method: it averages its multipliers, it moves its penalty parameters slowly,
# and it holds the model back by a proximal term. Each has a number, $\gamma$, $\kappa$ and $\mu$, and setting the number to 0 takes
# the thing away. The second paper's Tables 4 and 5 do so, experiment by experiment. This chapter does it again, says in
# advance what should happen, and then compares *effects*, which can be compared on other rows, rather than losses, which
# cannot.
#
# ```{admonition} Objectives
# :class: tip
# After this chapter you can
#
# - say what $\gamma = 0$, $\kappa = 0$ and $\mu = 0$ leave of the algorithm;
# - read an ablation table whose rows are searches of different grids, and name what it cannot show;
# - decide whether two tables agree when their losses cannot be compared.
# ```

# %% tags=["parameters"]
profile = "quick"
seed = 0
experiment = None
seeds = None
steps = None
single_steps = None
rows = None
iterations = None

# %% tags=["hide-input"]
from myst_nb import glue

from fairfront import runs
from fairfront.plotting import present
from fairfront.studies import ablations as study

parameters = study.Parameters(
    profile=profile,
    seed=seed,
    experiment=experiment,
    seeds=seeds,
    steps=steps,
    single_steps=single_steps,
    rows=rows,
    iterations=iterations,
)
result = runs.compute(study, parameters)
tables = result.tables
for name, text in study.facts(tables, parameters).items():
    glue(name, text, display=False)

# %% [markdown]
# ## What a zero takes away
#
# One step of SPBM moves the multiplier $\lambda$, the penalty parameter $p$ and the centre $s$ of the proximal term:
#
# $$
# \begin{aligned}
# \lambda^+ &= \operatorname{clip}\bigl( \gamma \lambda + (1 - \gamma)\, \lambda\, \varphi'(g / p) \bigr), \\
# p^+ &= \operatorname{clip}\Bigl( p\, \Bigl( \kappa + \frac{1 - \kappa}{\varphi'(g) + 10^{-8}} \Bigr) \Bigr), \qquad
# s^+ = \delta s + (1 - \delta)\, x^+ ,
# \end{aligned}
# $$ (eq-ablations-step)
#
# the second line by the rule ADAPT; by ALM it is $p^+ = \operatorname{clip}(\rho \lambda^+)$.
#
# ````{prf:proposition} What is left
# :label: prop-ablations-left
#
# 1. Let $g/p \ge -\tfrac12$, and let $g$ be a mini-batch's value with mean $\bar g$ and variance $\sigma^2$, given $\lambda$ and $p$.
#    Before it is clipped, $\lambda^+ / \lambda$ has mean $1 + (1 - \gamma)\, \bar g / p$ and standard deviation $(1 - \gamma)\, \sigma / p$: with
#    $\gamma = 0$ the multiplier takes the whole of every batch's noise.
# 2. With $\kappa = 0$ and $-\tfrac12 \le g < 0$, the parameter $p$ grows by the factor $1 / (1 + g)$ a step (up to the $10^{-8}$); with
#    $\kappa$ close to 1 by a factor near 1.
# 3. The proximal term's gradient is a weighted sum of the model's last moves:
#    $\mu (x^k - s^k) = \mu \sum_{j=0}^{k-1} \delta^{j+1} (x^{k-j} - x^{k-j-1})$ from $s^0 = x^0$. With $\mu = 0$ nothing
#    holds the model back.
# ````
#
# ````{prf:proof}
# 1: on the quadratic branch $\varphi'(t) = 1 + t$, so $\lambda^+ / \lambda = 1 + (1 - \gamma)\, g / p$. 2: $\varphi'(g) = 1 + g$. 3: with
# $e^k = x^k - s^k$ the last line of {eq}`eq-ablations-step` gives $e^{k+1} = \delta\, (e^k + x^{k+1} - x^k)$, and $e^0 = 0$.
# ````
#
# So one expects $\gamma = 0$ to hurt where batches are noisy, that is where they hold few rows of each group, and $\mu = 0$
# to matter little where Adam's own averages damp the same moves.
#
# ## The tables
#
# A row of the paper's tables is a search of its own: the best entry, by the rule of selection, of a grid in which the
# parameter is 0. What was run here: {glue:text}`setting`. {glue:text}`absent`
#
# On every experiment each ablation is tried on the configuration that the paper selected, and on some (see the column of
# entries) on a balanced part of its grid as well. It is compared with the whole method under the penalty rules that its own
# entries have, the better one where it has both; $\kappa = 0$ is compared with ADAPT, which alone has a $\kappa$.

# %% tags=["hide-input"]
best = study.table_ablations(tables)
present(best.drop(columns=["our deviation", "selected"]))

# %% [markdown]
# What the rule of selection took:

# %% tags=["hide-input"]
present(best[["experiment", "ablation", "entries", "selected"]])

# %% [markdown]
# ## Effects
#
# The losses belong to other rows, fewer steps and smaller networks. What can be compared is the direction: is the loss of the
# best entry higher, the same (within a hundredth), or lower than that of the whole method?

# %% tags=["remove-cell"]
glue("figure_ablations", study.figure_ablations(tables, parameters), display=False)

# %% [markdown]
# ```{glue:figure} figure_ablations
# :name: fig-ablations
# :alt: A panel an experiment with four rows: gamma at zero, kappa at zero, mu at zero, and the ALM rule against ADAPT. Black strokes give the paper's ratio of the ablation's loss to the whole method's, orange circles the ratio found here, open where the ablation's best entry is infeasible. Strokes and circles lie near one in most rows of the first three experiments and far apart in a few.
#
# Loss of each ablation over that of the whole method (for the ALM rule: over that of ADAPT), in the paper's Tables 4 and 5
# and here. Data and variant: {glue:text}`setting`.
# ```

# %% tags=["hide-input"]
present(study.table_agreement(tables))

# %% [markdown]
# The direction agrees in {glue:text}`agrees` comparisons; in {glue:text}`unknown` more the whole method itself has no feasible
# entry but the trivial solution, so that nothing is compared. In detail, with the ratio of the losses:
#
# - $\gamma = 0$: {glue:text}`gamma_ours`;
# - $\kappa = 0$: {glue:text}`kappa_ours`;
# - $\mu = 0$: {glue:text}`mu_ours`;
# - the ALM rule against ADAPT: {glue:text}`alm_ours`.
#
# Three things limit what such a table shows, here and in the paper. The rows are searches of grids of different sizes, and
# the larger grid has the better best entry by chance alone. Two of the paper's pairs of rows agree to the last digit (E3: ALM
# and $\gamma = 0$; ADAPT and $\mu = 0$), although no entry belongs to both grids. And on the equations a feasible
# entry may be the trivial solution, whose loss no ablation can change.

# %% tags=["remove-cell"]
# NBVAL_CHECK_OUTPUT
effects = study.table_effects(tables)
complete = bool(best.groupby("experiment").ablation.nunique().eq(5).all())
assert complete, "an experiment lacks an ablation"
known = effects[effects.ours != "unknown"]
consistent = bool(((known["our ratio"] > 1) | (known.ours != "higher")).all())
assert consistent, "an effect contradicts its ratio"
print("five rows an experiment, and effects that follow from the losses:", complete and consistent)
for row in effects.itertuples():
    print(row.experiment, study.LABELS[row.ablation], row.ours, f"ratio {row[4]:.2f}")

# %% [markdown]
# ## What holds

# %% tags=["hide-input"]
present(runs.verdicts(result))

# %% [markdown]
# ## Exercises
#
# ```{exercise-start} The multiplier's noise
# :label: ex-ablations-noise
# ```
# Let $g$ be 0 on average, with standard deviation 0.1 over batches, and $p = 0.1$. Simulate the multiplier for 200 steps from 1
# with $\gamma = 0$, 0.9 and 0.99, clipped to $[10^{-4}, 100]$. By how much do the runs spread?
# ```{exercise-end}
# ```

# %% [markdown]
# ```{solution-start} ex-ablations-noise
# :class: dropdown
# ```
# By {prf:ref}`prop-ablations-left` one step spreads $\lambda$ by the factor $(1 - \gamma)\, \sigma / p$, which is 1 without averaging. Then
# $\lambda$ is a product of factors whose logarithms are negative on average, and a constraint that is neither violated nor
# satisfied drives its multiplier towards the floor. With averaging it drifts up instead, slowly: below $t = -\tfrac12$ the
# derivative $\varphi_{QL}'(t) = -1/(4t)$ lies above $1 + t$, so that the mean factor exceeds 1, which is the bias of mini-batches.

# %% tags=["solution"]
import numpy as np
import torch

from fairfront.constrained import barriers

generator = np.random.default_rng(0)
noise = torch.as_tensor(generator.normal(0.0, 0.1, (200, 1000)))
for gamma in (0.0, 0.9, 0.99):
    multiplier = torch.ones(1000, dtype=torch.float64)
    for g in noise:
        weight = multiplier * barriers.QL.derivative(g / 0.1)
        multiplier = torch.lerp(multiplier, weight, 1 - gamma).clamp(1e-4, 100.0)
    low, middle, high = multiplier.quantile(torch.tensor([0.05, 0.5, 0.95], dtype=torch.float64)).tolist()
    print(f"gamma = {gamma:g}: median {middle:.3g}, from {low:.3g} to {high:.3g}")

# %% [markdown]
# ```{solution-end}
# ```
#
# ```{exercise-start} The proximal term is a memory
# :label: ex-ablations-memory
# ```
# Verify item 3 of {prf:ref}`prop-ablations-left` on a random path of 30 points in the plane, with $\delta = \tfrac12$.
# ```{exercise-end}
# ```

# %% [markdown]
# ```{solution-start} ex-ablations-memory
# :class: dropdown
# ```
# Run the centre's recursion and the sum, and compare.

# %% tags=["solution"]
path = generator.normal(size=(30, 2)).cumsum(axis=0)
centre, delta = path[0], 0.5
for point in path[1:]:
    centre = delta * centre + (1 - delta) * point
moves = np.diff(path, axis=0)[::-1]
memory = (delta ** np.arange(1, 30)) @ moves
print("largest difference:", f"{np.abs(path[-1] - centre - memory).max():.1e}")

# %% [markdown]
# ```{solution-end}
# ```
#
# ```{exercise-start} The larger grid wins
# :label: ex-ablations-larger
# ```
# Suppose that an ablation changes nothing: every entry's loss is drawn from one distribution. How often does the better of
# 360 entries beat the better of 60?
# ```{exercise-end}
# ```

# %% [markdown]
# ```{solution-start} ex-ablations-larger
# :class: dropdown
# ```
# The least of 420 independent losses is as likely any of them, so it lies in the larger grid with probability $360/420 = 6/7$. A
# table of best entries ranks grids as well as methods.

# %% tags=["solution"]
losses = generator.normal(size=(20000, 420))
print(f"the larger grid wins in {np.mean(losses.argmin(axis=1) < 360):.3f} of the draws; 6/7 is {6 / 7:.3f}")

# %% [markdown]
# ```{solution-end}
# ```
