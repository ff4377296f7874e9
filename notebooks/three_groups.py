# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# (three-groups)=
# # Three groups: the simplex of weights
#
# Three groups' weights fill a triangle. This chapter computes an unfairness metric over all of it, for smoothed support
# vector machines, shows it as a map that can be pointed at, and finds its low points.
#
# ```{admonition} Objectives
# :class: tip
# After this chapter you can
#
# - read barycentric axes, and place any strategy on the simplex;
# - differentiate through a model whose loss has no second derivative, and say what is lost;
# - find local minima on a grid, polish them, and tell them from places where a search merely stopped;
# - say how far the five strategies are from the best weights.
# ```

# %% tags=["parameters"]
profile = "quick"
seed = 0
partition = ("compas:age", "acs2012-employment:race", "german:gender+age")
metric = ("demographic_parity", "equalized_odds", "individual_fairness")
variant = "paper"
loss = "squared_hinge"
l2 = 0.01
penalize_intercept = False
resolution = None
rows = None

# %% tags=["hide-input"]
from myst_nb import glue

from fairfront import runs
from fairfront.plotting import present
from fairfront.studies import three_groups as study

parameters = study.Parameters(
    profile=profile,
    seed=seed,
    partition=partition,
    metric=metric,
    variant=variant,
    loss=loss,
    l2=l2,
    penalize_intercept=penalize_intercept,
    resolution=resolution,
    rows=rows,
)
result = runs.compute(study, parameters)
tables = result.tables
for name, text in study.facts(tables, parameters).items():
    glue(name, text, display=False)

# %% [markdown]
# ## Three groups, and a loss with a kink in its derivative
#
# A partition with more than three cells is brought to three by merging its two smallest cells again and again. The paper
# does not say which three data sets and metrics its Figure 7 shows; here is an attribute with three values and two
# partitions that were merged.

# %% tags=["hide-input"]
present(tables["groups"])

# %% [markdown]
# The smoothed support vector machine has the loss $\max(0, 1 - \tilde y z)^2$, $\tilde y = 2y - 1$. It has one derivative and no second
# one where $\tilde y z = 1$.
#
# ````{prf:proposition} The implicit function of a smoothed SVM
# :label: prop-implicit-svm
#
# With $\ell_2 > 0$ on every coordinate the weighted risk of a smoothed SVM is strongly convex and $w^\star(\lambda)$ is Lipschitz on
# the simplex. Where no row has $\tilde y_i x_i^\top w^\star(\lambda) = 1$ it is differentiable, and
#
# $$ \frac{\partial \varphi}{\partial \lambda_a} = -\nabla F_a(w^\star)^\top v, \qquad H v = X^\top \nabla M(X w^\star), \qquad
#    H = \sum_a \lambda_a \Bigl( \frac{2}{n_a} \sum_{i \in I_a,\; \tilde y_i x_i^\top w^\star < 1} x_i x_i^\top + \ell_2 I \Bigr) . $$
# ````
#
# ````{prf:proof}
# The gradient of the weighted risk is piecewise linear in $w$, strongly monotone, and Lipschitz in $\lambda$ on the bounded set of
# minimisers, so its zero is Lipschitz in $\lambda$. Where no row is on its kink the set of rows with a positive loss is the same
# nearby; there the risk is a quadratic with the Hessian $H$, and the implicit function theorem applies.
# ````
#
# Between kinks a Newton step is exact, so that from a neighbour's solution two or three steps solve each of the
# {glue:text}`points` problems of a map.

# %% tags=["remove-cell"]
glue("figure_three_groups", study.figure_three_groups(tables, parameters), display=False)

# %% [markdown]
# ```{glue:figure} figure_three_groups
# :name: fig-three-groups
# :alt: Three by three triangles, a row per data set and a column per metric, each a heat map of normalised unfairness over the weights of three groups, with contour lines. Dark regions of low unfairness lie along an edge or near a corner in most panels, and in the middle of the triangle for individual fairness in two of them. Red circles mark the local minima and a star the weights of badr; minimax, one-group, balanced, uniform and ERM weights lie elsewhere in most panels.
#
# The paper's Figure 7: unfairness over the simplex. At corner $a$ all the weight is on group $a$; ticks on the edge from corner
# $a$ to the next count the weight of group $a$. Nine lines divide each triangle into tenths. Data and
# variant: {glue:text}`setting`.
# ```

# %% tags=["hide-input"]
study.figure_explorer(tables, parameters)

# %% [markdown]
# ## Local minima
#
# Each of the grid's points that is lower than its six neighbours is a start for a local search, and so are the other
# strategies' weights and the corners. What a search ends in counts as a minimum when no grid point in the cells around it
# is lower: a search can also stop on a slope that is almost flat.
#
# Several local minima have {glue:text}`several` functions, from {glue:text}`minima_range` each. badr's weights are at a corner in
# {glue:text}`vertices`, on an edge in {glue:text}`edges`, and positive for all three groups in {glue:text}`inside`. So with three
# groups the ends are no longer where the optimum mostly is, and no other strategy comes within a thousandth of the
# metric's range of it in {glue:text}`free`; the largest distance is {glue:text}`gain_largest` of the range ({glue:text}`gain_at`).

# %% tags=["hide-input"]
present(study.table_pairs(tables), digits=2)

# %% tags=["remove-cell"]
# NBVAL_CHECK_OUTPUT
fairness = tables["strategies"].pivot_table(index=["partition", "metric"], columns="name", values="unfairness")
never_beaten = bool((fairness.sub(fairness["badr"], axis=0) >= 0).all(axis=None))
least = tables["front"].groupby("partition")[list(metric)].min().stack()
span = tables["front"].groupby("partition")[list(metric)].agg(lambda column: column.max() - column.min()).stack()
least.index.names = span.index.names = ["partition", "metric"]
below_map = bool((fairness["badr"] <= least + 1e-5 * span).all())
assert never_beaten, "a strategy is fairer than badr"
assert below_map, "a point of the map is fairer than badr"
print("no strategy and no point of the map is fairer than badr:", never_beaten and below_map)
for row in study.table_pairs(tables).itertuples(index=False):
    print(row[0], row[1], "minima:", row.minima, "reached:", row.reached)
print("badr's unfairness:", *(f"{value:.3f}" for value in fairness["badr"]))

# %% [markdown]
# ## What holds
#
# Balanced weights are less fair than uniform ones in {glue:text}`balanced_worse` pairs.

# %% tags=["hide-input"]
present(runs.verdicts(result))

# %% [markdown]
# ## Exercises
#
# ```{exercise-start} Reading the axes
# :label: ex-three-axes
# ```
# Corner 1 is on top, corner 2 bottom left. Which weights has the middle of the bottom edge? And where do all weights lie that give
# group 1 exactly one quarter?
# ```{exercise-end}
# ```

# %% [markdown]
# ```{solution-start} ex-three-axes
# :class: dropdown
# ```
# A point is the mean of the corners, weighted by $\lambda$: the middle of the bottom edge is $(0, \tfrac12, \tfrac12)$. Height is
# proportional to $\lambda_1$, so the weights with $\lambda_1 = \tfrac14$ lie on a horizontal line.

# %% tags=["solution"]
from fairfront.plotting import barycentric

print(barycentric([[0, 0.5, 0.5]]).round(3), barycentric([[0.25, 0.75, 0], [0.25, 0, 0.75]])[:, 1].round(3))

# %% [markdown]
# ```{solution-end}
# ```
#
# ```{exercise-start} Merging decides
# :label: ex-three-merge
# ```
# The group "asian + other" of the ACS sample was made by merging. Cut the same rows into three groups by gender and age instead, and compare badr's
# weights.
# ```{exercise-end}
# ```

# %% [markdown]
# ```{solution-start} ex-three-merge
# :class: dropdown
# ```
# Another partition is another problem: other groups, other risks, another optimum. A statement on fairness without its
# partition says little.

# %% tags=["solution"]
for words in ("acs2012-employment:race", "acs2012-employment:gender+age"):
    again = runs.compute(study, study.Parameters(profile="smoke", partition=(words,)))
    print(
        words, dict(zip(again.tables["pairs"].metric, study.table_pairs(again.tables)["badr's weights"], strict=True))
    )

# %% [markdown]
# ```{solution-end}
# ```
#
# ```{exercise-start} How fine must a grid be?
# :label: ex-three-grid
# ```
# Compute the map of one data set at resolutions 6, 12 and 24. How far is the lowest grid point from the polished minimum, and how fast
# does that distance shrink?
# ```{exercise-end}
# ```

# %% [markdown]
# ```{solution-start} ex-three-grid
# :class: dropdown
# ```
# Near a smooth minimum inside, the function is quadratic, so halving the mesh divides the excess by about four, on average:
# by how much in a single step depends on where the minimum lies within its cell.

# %% tags=["solution"]
for mesh in (6, 12, 24):
    again = runs.compute(
        study,
        study.Parameters(
            profile="smoke", partition=("german:gender+age",), metric=("individual_fairness",), resolution=mesh
        ),
    )
    lowest, polished = again.tables["front"].individual_fairness.min(), again.tables["pairs"].least.item()
    print(f"resolution {mesh}: lowest grid point {lowest - polished:.1e} above the minimum")

# %% [markdown]
# ```{solution-end}
# ```
