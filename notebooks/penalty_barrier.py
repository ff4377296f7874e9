# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# (penalty-barrier)=
# # From penalty and barrier to SPBM
#
# A penalty pushes a model back when a constraint is violated; a barrier keeps it away from the bound while the constraint holds.
# The functions of the penalty-barrier method {cite}`bental1997` do both, and its stochastic version, SPBM {cite}`bosak2026`, is the
# subject of the second half of this book. This chapter takes it apart on problems whose answers are known exactly.
#
# ```{admonition} Objectives
# :class: tip
# After this chapter you can
#
# - write down $\varphi_{QL}$ and $\varphi_{QR}$, and prove the properties that the method rests on;
# - run the classical method, predict its rate, and say what a shrinking penalty parameter buys;
# - say for which parameters SPBM and an augmented Lagrangian method take the same steps, and where they part;
# - solve a constrained problem in two variables by hand, and judge five training methods by the answer.
# ```

# %% tags=["parameters"]
profile = "quick"
seed = 0
lr = 0.02
gamma = 0.99
mu = 1.0
eta = 0.02
beta = 1.0
multiplier = 0.1
steps = None
iterations = None
reduction_steps = None
problems = None

# %% tags=["hide-input"]
from myst_nb import glue

from fairfront import runs
from fairfront.plotting import present
from fairfront.studies import penalty_barrier as study

parameters = study.Parameters(
    profile=profile,
    seed=seed,
    lr=lr,
    gamma=gamma,
    mu=mu,
    eta=eta,
    beta=beta,
    multiplier=multiplier,
    steps=steps,
    iterations=iterations,
    reduction_steps=reduction_steps,
    problems=problems,
)
result = runs.compute(study, parameters)
tables = result.tables
for name, text in study.facts(tables, parameters).items():
    glue(name, text, display=False)

# %% [markdown]
# ## Two functions
#
# The problem is $\min_x f(x)$ subject to $g_i(x) \le 0$, $i = 1, \dots, m$. Each constraint enters through a function of its value
# over a penalty parameter $p_i > 0$:
#
# $$
# \begin{aligned}
# \mathcal{L}_p(x, \lambda) &= f(x) + \sum_{i=1}^m \lambda_i\, p_i\, \varphi\bigl(g_i(x) / p_i\bigr), \\
# \nabla_x \mathcal{L}_p &= \nabla f + \sum_{i=1}^m \lambda_i\, \varphi'\bigl(g_i(x) / p_i\bigr) \nabla g_i .
# \end{aligned}
# $$ (eq-pb-lagrangian)
#
# ````{prf:definition} Quadratic-logarithmic and quadratic-reciprocal
# :label: def-pb-phi
#
# Both are $t + \tfrac12 t^2$ right of a joint, $-\tfrac12$ and $-\tfrac13$, and left of it
#
# $$
# \varphi_{QL}(t) = -\tfrac14 \log(-2t) - \tfrac38, \qquad
# \varphi_{QR}(t) = \frac{32}{27\,(1 - t)} - \frac76 .
# $$
# ````

# %% tags=["remove-cell"]
glue("pb_figure_functions", study.figure_functions(tables, parameters), display=False)

# %% [markdown]
# ```{glue:figure} pb_figure_functions
# :name: fig-pb-functions
# :alt: Four panels over t from -2.5 to 1.5. The function, its first and its second derivative for QL, QR and the quadratic: right of the joints all three agree, left of them the slopes of QL and QR fade to zero while the quadratic's becomes negative. Last panel: p phi of t over p for four values of p, flat and close to zero left of zero and steeper right of it the smaller p is.
#
# The functions and their derivatives, with their joints; and $p\,\varphi(t/p)$, which tends to the indicator of $t \le 0$ as $p \to 0$.
# Data: {glue:text}`setting_functions`.
# ```
#
# ````{prf:proposition} What the method needs of them
# :label: prop-pb-phi
#
# For both functions $\varphi(0) = 0$, $\varphi'(0) = 1$, $\varphi$ is twice continuously differentiable, $\varphi' > 0$ and
# $0 < \varphi'' \le 1$ on the whole line; so $\varphi$ is increasing and strictly convex. $\varphi_{QL}$ is unbounded below,
# $\varphi_{QR} > -\tfrac76$.
# ````
#
# ````{prf:proof}
# Each piece is smooth on its side. At the joint of QL value, slope and curvature are $-\tfrac38$, $\tfrac12$ and $1$ from both sides,
# at that of QR $-\tfrac{5}{18}$, $\tfrac23$ and $1$. Right of the joint $\varphi' = 1 + t > 0$ and $\varphi'' = 1$; left of it
# $\varphi_{QL}' = -\tfrac{1}{4t}$, $\varphi_{QL}'' = \tfrac{1}{4t^2} < 1$, $\varphi_{QR}' = \tfrac{32}{27 (1 - t)^2}$ and
# $\varphi_{QR}'' = \tfrac{64}{27 (1 - t)^3} < 1$.
# ````
#
# The five statements are decided in exact arithmetic on the printed formulas: jumps are computed as rational numbers, and a
# solver of inequalities finds no $t$ on either piece with $\varphi' \le 0$, $\varphi'' \le 0$ or $\varphi'' > 1$. The functions that
# the optimisers use are written without branches; they and both derivatives agree with the formulas to {glue:text}`phi_error`,
# at the joints and next to them as well.

# %% tags=["hide-input"]
present(study.table_checks(tables, "spbm-phi"))

# %% tags=["remove-cell"]
# NBVAL_CHECK_OUTPUT
checks = tables["checks"]
of_phi = checks[checks.claim == "spbm-phi"]
assert of_phi.holds.all(), "a property of phi fails"
print("every property of both functions holds:", bool(of_phi.holds.all()), "in", len(of_phi), "checks")

# %% [markdown]
# ## A problem solved by hand
#
# $$
# \begin{aligned}
# \min_{x \in \mathbb{R}^2}\; & \lVert x - c \rVert^2, \qquad c = (2, 1), \\
# \text{subject to}\; & g_1(x) = \lVert x \rVert^2 - 1 \le 0, \qquad g_2(x) = x_2 - \tfrac34 \le 0 .
# \end{aligned}
# $$ (eq-pb-problem)
#
# ````{prf:proposition} Its KKT point
# :label: prop-pb-kkt
#
# The unique solution of {eq}`eq-pb-problem` is $x^\star = c / \lVert c \rVert$ with the multipliers
# $\lambda^\star = (\lVert c \rVert - 1,\; 0)$.
# ````
#
# ````{prf:proof}
# The problem is strictly convex and some point satisfies both constraints strictly, so the KKT conditions decide. Suppose that only
# $g_1$ is active: $2 (x - c) + 2 \lambda_1 x = 0$ gives $x = c / (1 + \lambda_1)$, and $\lVert x \rVert = 1$ gives
# $\lambda_1 = \lVert c \rVert - 1 > 0$. This point has $x_2 = 1/\sqrt5 < \tfrac34$, so the supposition was right.
# ````
#
# In numbers $x^\star$ = ({glue:text}`x1`, {glue:text}`x2`), $\lambda_1^\star$ = {glue:text}`lambda1` and $f(x^\star)$ =
# {glue:text}`optimum`; the second constraint holds with a margin of {glue:text}`margin`. A convex solver that knows nothing of the
# proof finds the same point and the same multipliers, to {glue:text}`solver_gap`.

# %% tags=["hide-input"]
present(tables["solutions"], digits=6)

# %% tags=["remove-cell"]
# NBVAL_CHECK_OUTPUT
hand, solver = tables["solutions"].drop(columns="source").to_numpy()
kkt = checks[checks.subject == "by hand"]
agree = bool(abs(hand - solver).max() < 1e-5)
assert kkt.holds.all() and agree, "the point by hand is no KKT point, or the solver finds another"
print("x*, lambda*, f* by hand:", *(f"{value:.5f}" for value in hand))
print("a KKT point, and the solver's:", bool(kkt.holds.all()) and agree)

# %% [markdown]
# ## The classical method
#
# The penalty-barrier multiplier method (PBM) minimises the penalised Lagrangian and then corrects the multipliers by the slopes that it
# met, with a penalty parameter that shrinks:
#
# $$
# \begin{aligned}
# x^{k+1} &= \arg\min_x \mathcal{L}_{p^k}(x, \lambda^k), \\
# \lambda_i^{k+1} &= \lambda_i^k\, \varphi'\bigl(g_i(x^{k+1}) / p_i^k\bigr), \qquad p^{k+1} = \pi p^k .
# \end{aligned}
# $$ (eq-pb-pbm)
#
# At a fixed point either $\varphi'(g_i/p_i) = 1$, which is $g_i = 0$, or $\lambda_i = 0$: complementarity is built in. The update
# multiplies, so a multiplier stays positive, and one at 0 stays there for ever.
#
# ````{prf:proposition} The rate at a constant penalty parameter
# :label: prop-pb-rate
#
# On {eq}`eq-pb-problem` with $p$ constant the multipliers converge linearly, with the larger of the rates
#
# $$
# \frac{1}{1 + \lambda_1^\star \sigma / p} \qquad\text{and}\qquad \varphi'\bigl(g_2(x^\star) / p\bigr),
# $$
#
# where $\sigma = \nabla g_1^\top \bigl(\nabla^2 f + \lambda_1^\star \nabla^2 g_1\bigr)^{-1} \nabla g_1 = 2/\sqrt5$ at $x^\star$.
# ````
#
# ````{prf:proof}
# Let $H = \nabla^2 f + \lambda_1^\star \nabla^2 g_1$ and $a = \nabla g_1(x^\star)$. The minimiser moves with $\lambda_1$ by
# $-(H + (\lambda_1^\star / p)\, a a^\top)^{-1} a$, so $g_1$ moves by $-\sigma / (1 + \lambda_1^\star \sigma / p)$, and
# $\lambda_1 \varphi'(g_1 / p)$ by $1 - (\lambda_1^\star \sigma / p) / (1 + \lambda_1^\star \sigma / p)$, the first rate. The second
# multiplier is multiplied by $\varphi'(g_2(x^\star)/p) < 1$ in the limit. The derivative of the map at $\lambda^\star$ is triangular
# with these two numbers on its diagonal.
# ````

# %% tags=["remove-cell"]
glue("pb_figure_pbm", study.figure_pbm(tables, parameters), display=False)

# %% [markdown]
# ```{glue:figure} pb_figure_pbm
# :name: fig-pb-pbm
# :alt: Two panels, QL and QR, of the multipliers' error against the iteration on a logarithmic axis. With p constant the points lie on a straight dashed line; with p halved the line bends down, with p divided by ten it falls to rounding within six iterations.
#
# PBM on the problem in two variables: the error of the multipliers. Dashed: the slope of {prf:ref}`prop-pb-rate` at $p = 1$. Data:
# {glue:text}`setting_pbm`.
# ```
#
# Measured and predicted rate differ by at most {glue:text}`rate_gap`. After eight iterations the error with QL is
# {glue:text}`pbm_constant` with $p$ constant, {glue:text}`pbm_half` with $p$ halved each time and {glue:text}`pbm_tenth` with $p$ divided
# by ten: both rates of the proposition tend to 0 with $p$. That is why PBM drives $p$ to 0. A stochastic method cannot, as the next
# chapter shows: mini-batches turn a small $p$ into a bias.
#
# ## SPBM, and what it becomes on the quadratic branch
#
# SPBM replaces the exact minimisation by one step of Adam on a mini-batch, smoothed by a Moreau term, averages the multipliers, and
# keeps $p$ within $[\ell_c, u_c]$ (Algorithm 1):
#
# $$
# \begin{aligned}
# y^k &= -\nabla_x \overline{\mathcal{L}}_{p^k}(x^k, \lambda^k) - \mu\, (x^k - s^k), \\
# x^{k+1} &= \text{PrimalUpdate}(x^k, y^k), \\
# s^{k+1} &= \delta s^k + (1 - \delta)\, x^{k+1}, \\
# \lambda^{k+1} &= \operatorname{Proj}_{[\lambda_{\min}, \Lambda]}
#   \bigl[ \gamma \lambda^k + (1 - \gamma)\, \lambda^k \varphi'(\bar g / p^k) \bigr], \\
# p^{k+1} &= \operatorname{Proj}_{[\ell_c, u_c]}
#   \Bigl[ \Bigl( \kappa + \frac{1 - \kappa}{\varphi'(\bar g) + \varepsilon} \Bigr) p^k \Bigr] \quad\text{(ADAPT), or} \\
# p^{k+1} &= \operatorname{Proj}_{[\ell_c, u_c]} \bigl[ \rho \lambda^{k+1} \bigr] \quad\text{(ALM)} .
# \end{aligned}
# $$ (eq-pb-spbm)
#
# ````{prf:proposition} Appendix E.2, and one step further
# :label: prop-pb-reduction
#
# Let $\varphi(t) = t + \tfrac12 t^2$, the rule be ALM, and nothing be clipped, so that $p = \rho \lambda$. Then SPBM's primal step is one on
# $f + \lambda^\top g + \tfrac{1}{2\rho} \lVert g \rVert^2 + \tfrac\mu2 \lVert x - s \rVert^2$, and its dual step is
# $\lambda^{k+1} = \lambda^k + \tfrac{1 - \gamma}{\rho}\, \bar g$. Moreover these are exactly the steps of SSL-ALM (multipliers first,
# then $x$ with the new ones) with dual step size $\eta = (1 - \gamma)/\rho$ and penalty parameter $\rho' = \gamma/\rho$.
# ````
#
# ````{prf:proof}
# $\lambda_i \varphi'(g_i / p_i) = \lambda_i + g_i/\rho$, which is both the weight of $\nabla g_i$, the gradient of
# $\lambda^\top g + \tfrac{1}{2\rho} \lVert g \rVert^2$, and what the multiplier is averaged with. SSL-ALM weighs
# $\nabla g_i$ by $\lambda_i^{k+1} + \rho' g_i$, where $\lambda_i^{k+1} = \lambda_i^k + \eta g_i$; that is
# $\lambda_i^k + (\eta + \rho') g_i$, and $\eta + \rho' = 1/\rho$.
# ````
#
# The paper calls the result "SSL-ALM-like", since the two methods use the multipliers of different steps. The second half of the
# proposition says that another choice of parameters makes up for that. Checked is the optimiser itself, with QL on problems whose
# iterates stay right of its joint, against the augmented Lagrangian written out and differentiated, and against the optimiser
# SSL-ALM: with noise, with Adam and with plain gradient steps, with and without smoothing.

# %% tags=["remove-cell"]
glue("pb_figure_reduction", study.figure_reduction(tables, parameters), display=False)

# %% [markdown]
# ```{glue:figure} pb_figure_reduction
# :name: fig-pb-reduction
# :alt: Two panels of relative differences on a logarithmic axis against the step. Left: both lines stay near the unit in the last place. Right: both are at rounding until a dashed vertical line, where a constraint leaves the quadratic branch, and jump by more than ten orders of magnitude.
#
# Largest relative difference of $x$, $s$ and $\lambda$ from SPBM. Left: a random problem whose constraints are all active. Right: the
# problem in two variables, whose second constraint is not. Data: {glue:text}`setting_reduction`.
# ```
#
# Over {glue:text}`e2_steps` steps the three agree to {glue:text}`e2_gap` and {glue:text}`e2_alm_gap`, a few units in the last place. On the
# problem in two variables they part at step {glue:text}`e2_left`, where $g_2 / p_2$ falls below the joint. From there on the quadratic
# would pull the inactive constraint back to its bound, and the barrier lets go of it: this is what the left branch is for.

# %% tags=["remove-cell"]
# NBVAL_CHECK_OUTPUT
e2 = checks[checks.claim == "spbm-e2"]
assert e2.holds.all() and (e2.cases > 0).all(), "SPBM and the augmented Lagrangian differ"
print("the same iterates to rounding:", bool(e2.holds.all()), "largest relative difference below", f"{1e-12:.0e}")

# %% [markdown]
# ## Five methods on one problem
#
# All methods start at the same infeasible point and take the same number of Adam's steps under the same schedule (a short warm-up, then a
# cosine). Adam alone goes to $c$. Adam with a fixed penalty minimises $f + \beta \sum_i [g_i]_+$ with $\beta$ =
# {glue:text}`beta`; SSw steps on the worst violated constraint or else on $f$; SSL-ALM and SPBM have multipliers.

# %% tags=["remove-cell"]
glue("pb_figure_trajectories", study.figure_trajectories(tables, parameters), display=False)

# %% [markdown]
# ```{glue:figure} pb_figure_trajectories
# :name: fig-pb-trajectories
# :alt: The plane with a shaded disc whose top is cut off, circles of equal objective around (2, 1), and five paths from the top left. SPBM's and SSL-ALM's end at the cross that marks the solution on the disc's edge, that of SSw at the corner where both constraints meet, Adam with a penalty a little outside the disc, Adam alone at the centre of the circles.
#
# Paths of the five methods over contour lines of $f$; the feasible set is shaded. Data: {glue:text}`setting`.
# ```

# %% tags=["hide-input"]
present(study.table_ends(tables), digits=3)

# %% [markdown]
# SPBM ends {glue:text}`spbm_distance` from $x^\star$, with $\lambda_1$ = {glue:text}`spbm_lambda`; SSL-ALM ends {glue:text}`alm_distance` from
# it. Adam with the penalty violates the first constraint by {glue:text}`reg_violation`: its minimiser is $c/(1 + \beta)$ while
# $\beta < \lambda_1^\star$, which violates it by {glue:text}`reg_exact`. SSw stops {glue:text}`ssw_distance` from the solution, at the corner
# where both constraints meet. That is Adam's doing: it normalises each coordinate, so a step on $f$ and one on a constraint cancel wherever
# their signs do, whatever the gradients' sizes. With plain gradient steps SSw ends {glue:text}`ssw_sgd_distance` from it.

# %% tags=["remove-cell"]
glue("pb_figure_multipliers", study.figure_multipliers(tables, parameters), display=False)

# %% [markdown]
# ```{glue:figure} pb_figure_multipliers
# :name: fig-pb-multipliers
# :alt: Four panels of multipliers against the step, with dotted lines at the exact values. SPBM and SSL-ALM settle on them; so do SPBM with QR and with the ALM rule; with gamma 0.9 SPBM swings far beyond the axis, with 0.999 it is still below its value at the end; SSL-ALM with the quadratic penalty settles above.
#
# Multipliers against the step; dotted: their exact values, $\lambda_1^\star$ and 0. Data: {glue:text}`setting`.
# ```
#
# Three things can be read off. $\varphi$ and the penalty rule make little difference here. The multipliers have to be slower than the
# primal variables: with $\gamma$ = 0.9, the value that the paper's grids selected most often, one step of the multipliers at $p$ = 0.1
# is larger than what Adam can follow at this learning rate; $\lambda$ swings over orders of magnitude, and the run ends
# {glue:text}`fast_distance` from the solution. With $\gamma$ = 0.999 it is too slow for the number of steps. And SSL-ALM with the published
# quadratic penalty settles at {glue:text}`quadratic_lambda` instead of {glue:text}`lambda1`: it pulls the constraint that holds with a margin to its
# bound, and stops {glue:text}`quadratic_distance` from the solution. Its shifted form, $[\lambda + \rho g]_+$, and SPBM's barrier do not.

# %% tags=["remove-cell"]
# NBVAL_CHECK_OUTPUT
ends = study.table_ends(tables).set_index("run")
near = bool((ends.loc[["spbm", "ssl-alm", "spbm, QR", "spbm, ALM"], "distance to x*"] < 0.05).all())
assert near, "SPBM or SSL-ALM does not reach the solution"
print(
    "SPBM and SSL-ALM reach the solution, Adam with a penalty violates:",
    near and ends.loc["adam-reg", "largest g"] > 0.2,
)
print("lambda_1 of SPBM and SSL-ALM:", *(f"{ends.loc[name, 'lambda_1']:.2f}" for name in ("spbm", "ssl-alm")))

# %% [markdown]
# ## What holds

# %% tags=["hide-input"]
present(runs.verdicts(result))

# %% [markdown]
# ## Exercises
#
# ```{exercise-start} How large must a fixed penalty be?
# :label: ex-pb-exact
# ```
# Minimise $f + \beta [g_1]_+$ of {eq}`eq-pb-problem` by hand for every $\beta \ge 0$, and confirm it with Adam. From which $\beta$ on is the
# minimiser feasible, and why is that no recipe?
# ```{exercise-end}
# ```

# %% [markdown]
# ```{solution-start} ex-pb-exact
# :class: dropdown
# ```
# While $\lVert x \rVert > 1$ the gradient is $2 (x - c) + 2 \beta x$, so $x = c / (1 + \beta)$, which is outside the disc until
# $\beta = \lVert c \rVert - 1 = \lambda_1^\star$. For larger $\beta$ the minimiser is $x^\star$ itself: the hinge is an exact penalty. But the
# threshold is the multiplier, which nobody knows before the problem is solved.

# %% tags=["solution"]
import torch

from fairfront.constrained import PenalizedAdam, WarmupCosine
from fairfront.theory import penalty_barrier as theory

for weight in (0.5, 1.0, 1.5):
    x = torch.zeros(2, dtype=torch.float64, requires_grad=True)
    optimizer = PenalizedAdam([x], 2, lr=0.02, beta=weight)
    for step in range(600):
        optimizer.rescale_lr(WarmupCosine().factor(step, 600))
        optimizer.zero_grad()
        optimizer.step(theory.objective(x), torch.stack(theory.constraints(x)))
    norm = max(1.0, 5**0.5 / (1 + weight))
    print(f"beta {weight}: |x| = {float(x.detach().norm()):.3f}, by hand {norm:.3f}")

# %% [markdown]
# ```{solution-end}
# ```
#
# ```{exercise-start} Predict a rate
# :label: ex-pb-predict
# ```
# Which of the two rates of {prf:ref}`prop-pb-rate` is the larger one at $p = 1$, and which at $p = 0.02$? Predict PBM's rate with QL at
# $p = 0.6$, then measure it.
# ```{exercise-end}
# ```

# %% [markdown]
# ```{solution-start} ex-pb-predict
# :class: dropdown
# ```
# With QL the inactive constraint contracts by $1 + g_2/p$ while $g_2/p$ is right of the joint, which is slow for a large $p$, and by $-p / (4 g_2)$
# left of it. Both rates are proportional to $p$ for small $p$, with the factors $1/(\lambda_1^\star \sigma)$ and $1/(4 \lvert g_2 \rvert)$, so it depends on
# which product is smaller: the multiplier times $\sigma$, or four times the margin.

# %% tags=["solution"]
for p in (1.0, 0.6, 0.02):
    active = 1 / (1 + theory.closed_form().multipliers[0] * 2 / 5**0.5 / p)
    larger = theory.printed_rate("ql", p)
    print(f"p = {p}: rate {larger:.4f}, decided by the", "active" if active == larger else "inactive", "constraint")
print("measured at 0.6 within", f"{theory.pbm_rate('ql', 0.6).measured:.0e}", "of the prediction")

# %% [markdown]
# ```{solution-end}
# ```
#
# ```{exercise-start} Where the quadratic penalty stops
# :label: ex-pb-quadratic
# ```
# SSL-ALM with the penalty $\tfrac\rho2 \lVert g \rVert^2$ keeps $\lambda_2$ at 0 and stops where $\lambda$ does not move. Find that point of
# {eq}`eq-pb-problem` for $\rho = 1$, and compare it with the run of this chapter.
# ```{exercise-end}
# ```

# %% [markdown]
# ```{solution-start} ex-pb-quadratic
# :class: dropdown
# ```
# $\lambda_1$ rests only where $g_1 = 0$. There $\nabla f + \lambda_1 \nabla g_1 + \rho\, g_2 \nabla g_2 = 0$, three equations in $x$ and
# $\lambda_1$: the last term is a force that the Lagrangian of the problem does not have. It vanishes only if the second constraint is active.

# %% tags=["solution"]
from scipy.optimize import fsolve


def equations(z):
    first, second = theory.constraints(z[:2])
    return [2 * (z[0] - 2) + 2 * z[2] * z[0], 2 * (z[1] - 1) + 2 * z[2] * z[1] + second, first]


stop = fsolve(equations, [0.9, 0.45, 1.2])
distance = float(((stop[:2] - theory.closed_form().x) ** 2).sum() ** 0.5)
print(f"lambda_1 = {stop[2]:.3f}, distance to x* {distance:.3f}")
print(
    f"the run: {ends.loc['ssl-alm, quadratic', 'lambda_1']:.3f}, {ends.loc['ssl-alm, quadratic', 'distance to x*']:.3f}"
)

# %% [markdown]
# ```{solution-end}
# ```
