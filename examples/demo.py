"""Two small problems from many starts: what is found, what is proved, and what theory allowed.

Run by ``make demo``; writes ``demo/report.txt`` and ``demo/convergence.png``.
"""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import restpoint as rp

OUT = Path("demo")
EPS = 1e-6
STARTS = 64


def sparse_tensor_pca() -> rp.Problem:
    """min -A(x1, x2, x3, x4) + 0.85 sum ||x_i||_1 over unit balls: section 6.1 of the paper, n = 12."""
    tensor = np.random.default_rng(1).standard_normal((12, 12, 12, 12))
    block = rp.Block(rp.sets.L2Ball(1.0), rp.penalties.L1(0.85))
    return rp.Problem(rp.smooth.Multilinear(tensor), [block] * 4)


def nonconvex_quadratic() -> rp.Problem:
    """min x'Qx/2 + b'x + 0.3 ||x||_1 over the unit ball, Q indefinite, n = 50."""
    rng = np.random.default_rng(2)
    half = rng.standard_normal((50, 50))
    smooth = rp.smooth.Quadratic(half + half.T, rng.standard_normal(50))
    return rp.Problem(smooth, rp.Block(rp.sets.L2Ball(1.0), rp.penalties.L1(0.3)))


def summary(result: rp.Result) -> str:
    """The distinct points that the starts found: value, how often, worst certified gap, zeros."""
    rounded = np.round(result.value, 4) + 0.0  # + 0.0: no negative zero
    lines = ["     value  starts  worst certified gap  entries that are zero"]
    for value in np.unique(rounded)[:6]:
        who = rounded == value
        zeros = np.mean([np.mean(np.asarray(x)[who] == 0.0) for x in result.xs])
        lines.append(
            f"  {value:8.4f}  {int(who.sum()):6d}  {result.gap[who].max():19.2e}  {zeros:21.0%}"
        )
    left_out = len(np.unique(rounded)) - 6
    if left_out > 0:
        lines.append(f"  ... and {left_out} more, all higher")
    return "\n".join(lines)


def plot(results: dict[str, rp.Result], path: Path) -> None:
    """Gap of every start over the iterations; the best start stands out."""
    figure, axes = plt.subplots(1, len(results), figsize=(10, 4), sharey=True, layout="constrained")
    for axis, (title, result) in zip(axes, results.items(), strict=True):
        trace = result.trace
        gap = np.where(trace.gap > 0, trace.gap, np.nan)
        best = int(np.argmin(np.where(result.certified, result.value, np.inf)))
        for start in range(gap.shape[1]):
            last = int(result.iterations[start]) + 1
            style = (
                {"color": "#1b4f8a", "lw": 2.2, "zorder": 3, "label": "best start"}
                if start == best
                else {"color": "#9db7d5", "lw": 0.7}
            )
            axis.semilogy(trace.iteration[:last], gap[:last, start], **style)
        axis.axhline(EPS, color="#b3401f", lw=1.2, ls="--", label=f"eps = {EPS:g}")
        axis.set_title(title)
        axis.set_xlabel("iteration")
        axis.grid(alpha=0.25)
        axis.legend(frameon=False)
    axes[0].set_ylabel("stationarity gap (largest block)")
    figure.savefig(path, dpi=150)
    plt.close(figure)


def main() -> None:
    """Solve both, print and write what is known."""
    OUT.mkdir(exist_ok=True)
    problems = {
        "Sparse tensor PCA, 12 x 12 x 12 x 12": sparse_tensor_pca(),
        "Nonconvex quadratic with l1, n = 50": nonconvex_quadratic(),
    }
    results, report = {}, []
    for title, problem in problems.items():
        result = rp.solve(problem, eps=EPS, starts=STARTS)
        results[title] = result
        explanation = rp.explain(problem, eps=EPS)
        report += [
            title,
            "=" * len(title),
            f"method: {explanation.reason}",
            "",
            str(result),
            "",
            summary(result),
            "",
            "the bound, from the first start:",
            str(explanation.bound),
            "",
            "",
        ]
        result.raise_for_status()
    text = "\n".join(report).rstrip() + "\n"
    (OUT / "report.txt").write_text(text, encoding="utf-8")
    plot(results, OUT / "convergence.png")
    print(text)
    print(f"Written: {OUT / 'report.txt'} and {OUT / 'convergence.png'}")


if __name__ == "__main__":
    main()
