# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# (engine-speed)=
# # How fast is the engine?
#
# The bilevel problem solves a regression at every step of its outer loop. This chapter shows what a step costs here, what it
# could cost at the least, and how the time compares with that of the authors' package on the same rows, function, solver
# and tolerance.
#
# ```{admonition} Objectives
# :class: tip
# After this chapter you can
#
# - name the passes over the rows that one evaluation of the implicit objective and its gradient cannot do without;
# - read a ratio of run times with care: what is compared, in which run, with or without compilation;
# - repeat every number with one command.
# ```

# %% tags=["parameters"]
profile = "quick"
seed = 0
rows = None
groups = (2, 6)
metric = "demographic_parity"
l2 = 0.01
repeats = None

# %% tags=["hide-input"]
from myst_nb import glue

from fairfront import runs
from fairfront.plotting import present
from fairfront.studies import engine_speed as study

parameters = study.Parameters(
    profile=profile, seed=seed, rows=rows, groups=groups, metric=metric, l2=l2, repeats=repeats
)
result = runs.compute(study, parameters)
tables = result.tables
for name, text in study.facts(tables, parameters).items():
    glue(name, text, display=False)

# %% [markdown]
# ## What one evaluation costs
#
# One evaluation of $\varphi(\lambda) = M(X w^\star(\lambda))$ with its gradient solves the lower level by Newton steps that
# reuse a factorised Hessian, and one adjoint system with the same factor. With everything reused that can be, three passes
# over the rows remain: one for gradient and Hessian together, one for the gradient at the point reached, and one product
# of the Hessian with a vector. Each costs time in proportion to $n d$ or $n d^2$; nothing costs more than that.

# %% tags=["remove-cell"]
glue("figure_rows", study.figure_rows(tables, parameters), display=False)

# %% [markdown]
# ```{glue:figure} figure_rows
# :name: fig-speed-rows
# :alt: Seconds per evaluation against rows on logarithmic axes, one line a number of groups, beside a dotted line of slope one.
#
# Time of one evaluation against the number of rows. Data and variant: {glue:text}`setting`.
# ```
#
# The largest problem of this build, {glue:text}`largest_rows` rows in {glue:text}`largest_groups` groups, took
# {glue:text}`largest_seconds` seconds for {glue:text}`largest_evaluations` evaluations. These times are of the machine on which the
# book was built, whatever else it did.

# %% tags=["hide-input"]
present(tables["times"], digits=3)

# %% tags=["remove-cell"]
# NBVAL_CHECK_OUTPUT
times = tables["times"]
assert (times.evaluations > 0).all() and (times.seconds > 0).all()
print("every problem was solved:", bool(times.fairness.notna().all()), *(f"{value:.4f}" for value in times.fairness))

# %% [markdown]
# ## Beside the authors' package
#
# The comparison runs both packages in turn, each time in a fresh process, pinned to one core with one thread, and takes the
# least time of each. Both minimise the published metric over $\ell_2$-regularised logistic regressions with SLSQP from
# uniform weights; the final weights of both are solved again to $10^{-11}$, so that their values are comparable. The records
# shown here were made on {glue:text}`recorded` ({glue:text}`recorded_on`; load of the machine at the time
# {glue:text}`recorded_load`) by `python -m benchmarks.record`; each case is one call of `python -m benchmarks.bilevel`.

# %% tags=["remove-cell"]
glue("figure_ratios", study.figure_ratios(tables, parameters), display=False)

# %% [markdown]
# ```{glue:figure} figure_ratios
# :name: fig-speed-ratios
# :alt: Horizontal bars on a logarithmic axis, one pair a case: the authors' package's time over ours, whole and without its compilation.
#
# The authors' package's time over ours, on synthetic rows, published variants of the metrics. Recorded on
# {glue:text}`recorded`, the same at every profile.
# ```
#
# The ratios run from {glue:text}`ratio_least` to {glue:text}`ratio_most`. Most of the peer's time is compilation, which it
# repeats for every shape of a group; without it the ratios run from {glue:text}`bare_least` to {glue:text}`bare_most`. Our
# final value is above the peer's by at most {glue:text}`value_excess`.

# %% tags=["hide-input"]
present(study.table_peer(), digits=3)

# %% [markdown]
# ## Targets
#
# The engine was built against targets that were fixed beforehand. Of these {glue:text}`met` are met. Missed:
# {glue:text}`missed`.

# %% tags=["hide-input"]
present(study.table_targets(), digits=3)

# %% tags=["remove-cell"]
# NBVAL_CHECK_OUTPUT
targets = study.table_targets()
print("targets met:", f"{int(targets.met.sum())} of {len(targets)}")

# %% [markdown]
# ## Exercises
#
# ```{exercise-start} The floor
# :label: ex-passes
# ```
# Count the multiplications of the three passes for $n$ rows and $d$ features. At which $d$ does the Hessian dominate?
# ```{exercise-end}
# ```

# %% [markdown]
# ```{solution-start} ex-passes
# :class: dropdown
# ```
# A gradient pass forms $Xw$ and $X^\top r$: $2nd$. A Hessian product the same. The Hessian needs $nd(d+1)/2$, by symmetry, and
# the scaling of the rows, $nd$. It dominates the other passes together, $2nd + 2nd + 2nd$, when $(d + 1)/2 + 1 > 6$.

# %% tags=["solution"]
print(next(d for d in range(1, 100) if (d + 1) / 2 + 1 > 6))

# %% [markdown]
# ```{solution-end}
# ```
#
# ```{exercise-start} More groups
# :label: ex-more-groups
# ```
# Time an evaluation for 2, 6 and 18 groups of the same rows. Why does the number of groups hardly matter?
# ```{exercise-end}
# ```

# %% [markdown]
# ```{solution-start} ex-more-groups
# :class: dropdown
# ```
# Groups only cut the sums over the rows into parts; the passes stay the same. The number of evaluations may grow.

# %% tags=["solution"]
more = runs.compute(study, study.Parameters(profile="smoke", rows=(4000,), groups=(2, 6, 18)))
print(more.tables["times"].groups.tolist())

# %% [markdown]
# ```{solution-end}
# ```
#
# ```{exercise-start} Fair comparisons
# :label: ex-fair-comparison
# ```
# A library compiles at its first call. Name a use for which the whole time is the right measure, and one for which it is not.
# ```{exercise-end}
# ```

# %% [markdown]
# ```{solution-start} ex-fair-comparison
# :class: dropdown
# ```
# Whoever fits one model on one data set waits for the compilation: the whole time counts. Whoever fits many models on rows of
# the same shape pays for it once: the time without it counts. So both are shown.
#
# ```{solution-end}
# ```
