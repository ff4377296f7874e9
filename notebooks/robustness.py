# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# (robustness)=
# # Robustness: how much of a grid works
#
# A table of best results says what a method can do when somebody has searched its hyper-parameters. How long the search
# takes is another question, and the second paper answers it with a picture: what share of a grid's entries ends with a
# good model? This chapter draws that picture, and shows how much of its message hangs on what the share is a share *of*.
#
# ```{admonition} Objectives
# :class: tip
# After this chapter you can
#
# - define a Moré-Wild score and read a profile made of scores;
# - say what happens to a profile when failures leave its denominator, and when two methods change places because of it;
# - tell which of a method's hyper-parameters decide whether its model is feasible at all;
# - draw a balanced part of a grid, when the whole of it is too dear.
# ```

# %% tags=["parameters"]
profile = "quick"
seed = 0
experiment = None
seeds = None
configurations = None
pinn_configurations = None
steps = None
rows = None
iterations = None

# %% tags=["hide-input"]
from myst_nb import glue

from fairfront import runs
from fairfront.plotting import present
from fairfront.studies import robustness as study

parameters = study.Parameters(
    profile=profile,
    seed=seed,
    experiment=experiment,
    seeds=seeds,
    configurations=configurations,
    pinn_configurations=pinn_configurations,
    steps=steps,
    rows=rows,
    iterations=iterations,
)
result = runs.compute(study, parameters)
tables = result.tables
for name, text in study.facts(tables, parameters).items():
    glue(name, text, display=False)

# %% [markdown]
# ## The grids
#
# The paper prints a list of values for every hyper-parameter (its appendix B.3), and the size of each grid in its section
# 4.2. A grid is the product of its lists, where SPBM's penalty rule and that rule's number are one list of six.

# %% tags=["hide-input"]
present(study.table_grids())

# %% [markdown]
# What was trained here: {glue:text}`setting`. Beside the paper's grids that is: {glue:text}`coverage`.
# {glue:text}`absent`
#
# A part of a grid is drawn such that every value of every list occurs about equally often, and every setting of SPBM comes
# with both penalty-barrier functions. E2 and E3 are trained in stacks: the entries are so many small networks, and one step
# of all of them costs little more than one step of one.
#
# ## Scores and profiles
#
# ````{prf:definition} Score and profile
# :label: def-robustness-score
#
# Let $Q$ be an entry's loss after training, $Q^\star$ the least loss of a feasible entry of *any* method on the same
# experiment, and $Q^0$ the loss of the untrained network. An entry's **score** is
#
# $$ \operatorname{score} = \max\Bigl( \frac{Q - Q^\star}{Q^0 - Q^\star},\ 0 \Bigr), $$ (eq-robustness-score)
#
# 0 for the best and 1 for one that has learnt nothing. A method's **profile** is the share of its entries that are feasible
# and have a score of at most $\tau$, as a function of $\tau$ {cite:p}`more2009`.
# ````
#
# An entry is feasible when no constraint, averaged over the seeds and the last epochs, exceeds its bound by more than a
# tenth of the bound. (The text at hand does not say what $Q^0$ is; the untrained network is what Moré and Wild's starting
# point corresponds to.)
#
# *Of which entries* is the share? The paper's authors leave the infeasible ones out.
#
# ````{prf:proposition} Dropping failures
# :label: prop-robustness-dropped
#
# Let a method have $n$ entries, $m \ge 1$ of them feasible, and let $F(\tau)$ be its profile among all entries, $D(\tau)$ the one
# among the feasible. Then $F = \tfrac{m}{n} D \le D$, and $D(\tau) \to 1$ as $\tau$ grows, whatever $m$ is. For two methods
# with feasible shares $a$ and $b$, the order $D_1(\tau) > D_2(\tau) > 0$ is reversed in $F$ if and only if
# $D_1(\tau) / D_2(\tau) < b / a$.
# ````
#
# ````{prf:proof}
# The same entries are counted, over $n$ in $F$ and over $m$ in $D$; every feasible entry has a finite score. $F_1 < F_2$ is
# $a D_1 < b D_2$.
# ````
#
# So $D$ cannot tell a method that fails nine times in ten from one that never fails. Both are drawn.

# %% tags=["remove-cell"]
glue("figure_profiles", study.figure_profiles(tables, parameters), display=False)

# %% [markdown]
# ```{glue:figure} figure_profiles
# :name: fig-robustness-profiles
# :alt: Two rows of step functions, for fairness experiments and for physics-informed networks, of SPBM and of SSL-ALM. In the upper row, where infeasible entries are left out, both rise to one on the fairness experiments, SPBM earlier. In the lower row, where they count as failures, the fairness curves end at the share of feasible entries, which is larger for SSL-ALM. A dotted line marks a score of a tenth.
#
# Moré-Wild profiles of the scores of {eq}`eq-robustness-score`: infeasible entries left out above, counted as failures
# below; dotted: what counts as a low loss here. Data and variant: {glue:text}`setting`.
# ```
#
# On the fairness experiments {glue:text}`fairness_spbm_feasible` of SPBM's entries are feasible and
# {glue:text}`fairness_ssl_alm_feasible` of SSL-ALM's. Among those, {glue:text}`fairness_spbm_published` of SPBM's and
# {glue:text}`fairness_ssl_alm_published` of SSL-ALM's have a low loss (a score of at most {glue:text}`low`): this is what the
# paper compares, and SPBM comes first in it. Among all entries it is {glue:text}`fairness_spbm_counted` and
# {glue:text}`fairness_ssl_alm_counted`: whoever picks an entry blindly is served by this number. It depends on the length
# of the runs, as the exercises show: SPBM's entries become feasible late, and are then good.
#
# On the equations {glue:text}`pinn_spbm_feasible` of SPBM's entries and {glue:text}`pinn_ssl_alm_feasible` of SSL-ALM's are
# feasible ({glue:text}`trivial`). There a profile is to be read with care: the function $u = 0$ satisfies the boundary
# condition of E6 exactly, so that an entry that collapses to it counts as feasible, and where nothing better is feasible it
# is the best, with score 0. Feasibility is not success.

# %% tags=["hide-input"]
present(study.table_counts(tables), digits=3)

# %% [markdown]
# ## Loss against violation

# %% tags=["remove-cell"]
glue("figure_configurations", study.figure_configurations(tables, parameters), display=False)

# %% [markdown]
# ```{glue:figure} figure_configurations
# :name: fig-robustness-configurations
# :alt: A panel an experiment, violation over the bound against loss, an open circle for each entry of SPBM and a square for each of SSL-ALM. On the fairness experiments SPBM's entries lie in two clouds, one of low loss far above the dashed line of feasibility, one just below it; squares of SSL-ALM lie at and far below the line, at higher losses.
#
# Every entry: its loss, and its largest constraint in multiples of the bound (scaled logarithmically away from 0); dashed:
# what counts as feasible. Data and variant: {glue:text}`setting`.
# ```
#
# The two methods fail in different ways. SPBM's failures are entries whose multipliers have not yet grown, near the
# unconstrained loss: its dual update is a *factor* a step, $\gamma + (1 - \gamma)\, \varphi'(g/p)$, so that a large $\gamma$ and a
# multiplier that starts at its floor of a ten-thousandth cost thousands of steps before the constraint is felt at all.
# SSL-ALM's multipliers grow by a *sum*. With $\rho = 1$ its quadratic penalty pulls satisfied constraints to their bounds
# too, which makes it feasible with room to spare, and dear in loss. Which setting does what:

# %% tags=["hide-input"]
first_experiment = tables["runs"].experiment.iloc[0]
present(study.table_factors(tables, first_experiment, "spbm"), digits=2)

# %% tags=["hide-input"]
present(study.table_factors(tables, first_experiment, "ssl-alm"), digits=2)

# %% [markdown]
# ## The best configurations
#
# The paper's rule: of the entries that are feasible within a tenth the one of least loss; where none is, the one that
# violates least.

# %% tags=["hide-input"]
present(study.table_best(tables))

# %% [markdown]
# Appendix B.4 adds that $\varphi_{QL}$ did better than $\varphi_{QR}$ in every experiment except E3. By the rule, the
# function selected here is {glue:text}`phi_selected` ("level": their best losses differ by a thousandth at most).
# Comparing the two with all else equal, and both feasible, the loss of $\varphi_{QL}$ is the lower one in so many pairs:
# {glue:text}`phi_pairs`. How much the two differ is in the table; a difference smaller than that between two seeds chooses
# nothing.

# %% tags=["hide-input"]
present(study.table_phi(tables))

# %% tags=["remove-cell"]
# NBVAL_CHECK_OUTPUT
grids, scored, shares = study.table_grids(), study.scores(tables), study.table_shares(tables)
sizes_hold = bool(grids["same"].all())
assert sizes_hold, "a grid has another size than the paper states"
best_is_zero = bool((scored[scored.feasible].groupby("experiment").score.min() == 0).all())
assert best_is_zero, "no feasible entry has the least loss"
consistent = True
for kind in ("fairness", "pinn"):
    if (scored.kind == kind).any():
        among_all = study.profile(scored, kind, counted=True)
        among_feasible = study.profile(scored, kind, counted=False)
        for row in shares[shares.kind == kind].itertuples():
            for tau in (0.01, 0.1, 1.0):
                product = among_feasible.at(tau)[row.method] * row.feasible / row.entries
                consistent &= abs(among_all.at(tau)[row.method] - product) < 1e-12
assert consistent, "the two denominators disagree"
print("grid sizes:", grids["size"].to_list(), sizes_hold)
print("the best feasible entry has score 0, and F = (m / n) D:", best_is_zero and consistent)
for row in study.table_counts(tables).itertuples():
    print(row.experiment, row.method, row.feasible, "of", row.trained, "feasible,", f"share {row[6]:.2f}")

# %% [markdown]
# ## What holds

# %% tags=["hide-input"]
present(runs.verdicts(result))

# %% [markdown]
# ## Exercises
#
# ```{exercise-start} When do the methods change places?
# :label: ex-robustness-places
# ```
# By {prf:ref}`prop-robustness-dropped`: from the feasible shares alone, by which factor must SPBM lead among feasible
# entries to lead among all? For which $\tau$ does it?
# ```{exercise-end}
# ```

# %% [markdown]
# ```{solution-start} ex-robustness-places
# :class: dropdown
# ```
# By the ratio of SSL-ALM's feasible share to SPBM's. The two profiles are step functions, so that the lead is found by
# evaluating both at every $\tau$ of a fine list.

# %% tags=["solution"]
import numpy as np

fair = shares[shares.kind == "fairness"].set_index("method")
needed = fair["share feasible"]["ssl-alm"] / fair["share feasible"]["spbm"]
print(f"SPBM has to lead by a factor of {needed:.2f}")
for counted in (False, True):
    found = study.profile(scored, "fairness", counted=counted)
    leads = [tau for tau in np.geomspace(1e-3, 1, 61) if found.at(tau)["spbm"] > found.at(tau)["ssl-alm"]]
    words = f"from {min(leads):.3f} to {max(leads):.3f}" if leads else "nowhere"
    print("infeasible counted:" if counted else "infeasible left out:", "SPBM leads", words)

# %% [markdown]
# ```{solution-end}
# ```
#
# ```{exercise-start} How long does the multiplier sleep?
# :label: ex-robustness-sleep
# ```
# A constraint is violated by a constant $g$, and $p$ stays put. After how many steps has a multiplier of SPBM grown from its
# floor $10^{-4}$ to 1, for each $\gamma$ of the fairness grid? How many steps does SSL-ALM take at $\eta = 0.01$?
# ```{exercise-end}
# ```

# %% [markdown]
# ```{solution-start} ex-robustness-sleep
# :class: dropdown
# ```
# The factor a step is $\gamma + (1 - \gamma)(1 + g/p) = 1 + (1 - \gamma)\, g/p$ on the quadratic branch, so it takes
# $\ln 10^4 / \ln(1 + (1 - \gamma) g/p)$ steps. SSL-ALM takes $1 / (\eta g)$. With $p$ at its lower bound SPBM is ten times as quick,
# which is why entries whose penalty rule lets $p$ fall are feasible sooner.

# %% tags=["solution"]
violation = 0.3
for p in (1.0, 0.1):
    for gamma in (0.9, 0.99, 0.999):
        taken = np.log(1e4) / np.log(1 + (1 - gamma) * violation / p)
        print(f"SPBM, p = {p:g}, gamma = {gamma:g}: {taken:,.0f} steps")
print(f"SSL-ALM, eta = 0.01: {1 / (0.01 * violation):,.0f} steps")

# %% [markdown]
# ```{solution-end}
# ```
#
# ```{exercise-start} Short runs
# :label: ex-robustness-short
# ```
# The profiles of a short run favour the method whose multipliers wake first. Train the same entries of SPBM for 300 and for
# 900 steps: how many are feasible?
# ```{exercise-end}
# ```

# %% [markdown]
# ```{solution-start} ex-robustness-short
# :class: dropdown
# ```
# More, the longer they are trained: what {numref}`fig-robustness-profiles` counts as SPBM's failures are in part entries that
# had no time.

# %% tags=["solution"]
from fairfront.runs.progress import quiet

for steps in (300, 900):
    few = study.Parameters(profile="smoke", experiment=("E2",), methods=("spbm",), configurations=20, steps=steps)
    longer = study.table_counts(study.run(few, quiet)).iloc[0]
    print(f"{steps} steps: {longer.feasible} of {longer.trained} entries feasible")

# %% [markdown]
# ```{solution-end}
# ```
#
# ```{exercise-start} A part of a grid
# :label: ex-robustness-part
# ```
# Draw balanced parts of SSL-ALM's fairness grid, and parts drawn without regard to balance. How unequally often do the
# learning rates occur in each?
# ```{exercise-end}
# ```

# %% [markdown]
# ```{solution-start} ex-robustness-part
# :class: dropdown
# ```
# A balanced part has every learning rate equally often; a part drawn at random has one of them several times as often as
# another, and its share of feasible entries is then partly that of one learning rate.

# %% tags=["solution"]
from fairfront.studies import hypergrids

lists = hypergrids.factors("fairness", "ssl-alm")
whole = hypergrids.grid(lists)
generator = np.random.default_rng(0)
balanced = [choice.lr for choice in hypergrids.part(lists, 20, generator)]
blind = [whole[place].lr for place in generator.choice(len(whole), 20, replace=False)]
for name, rates in (("balanced", balanced), ("blind", blind)):
    print(name, {rate: rates.count(rate) for rate in lists["lr"]})

# %% [markdown]
# ```{solution-end}
# ```
