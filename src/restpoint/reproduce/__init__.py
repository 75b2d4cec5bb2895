"""The paper's tables and figures, run anew beside what was printed."""
