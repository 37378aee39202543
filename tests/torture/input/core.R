# SPDX-License-Identifier: MIT
# Conditions, closures, regular expressions, matrices, sorting.
scale <- as.integer(commandArgs(TRUE)[1])
deep <- function(n) if (n == 0) stop("bottom") else 1 + deep(n - 1)
total <- 0
for (i in seq_len(scale * 20)) {
  total <- total + tryCatch(deep(i %% 30), error = function(e) nchar(conditionMessage(e)))
  total <- total + sum(sapply(seq_len(50), function(x) x %% 7))
  total <- total + nchar(gsub("a+", "b", paste(rep("aac", 50), collapse = "")))
  total <- total + sort(order((seq_len(100) * 7) %% 31))[3]
  withCallingHandlers(total <- total + 1, warning = function(w) invokeRestart("muffleWarning"))
}
m <- matrix((seq_len(400) * 7) %% 13, 20) + diag(20) * 50
cat(total, format(sum(solve(m)), digits = 6), "\n")
