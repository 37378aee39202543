;;; SPDX-License-Identifier: MIT  -*- lexical-binding: t -*-
;; Errors, buffers, regular expressions, sorting, closures, threads.
(require 'json)
(let ((scale (string-to-number (car command-line-args-left))) (total 0))
  (dotimes (i (* 20 scale))
    (condition-case err (json-read-from-string "[1,") (error (setq total (+ total (length err)))))
    (with-temp-buffer
      (insert (make-string 500 ?a))
      (goto-char (point-min))
      (while (re-search-forward "a\\{10\\}" nil t) (replace-match "bb"))
      (setq total (+ total (buffer-size))))
    (setq total (+ total (car (sort (mapcar (lambda (n) (% (* n 7) 31)) (number-sequence 1 50)) #'>))))
    (thread-join (make-thread (lambda () (setq total (+ total (length (json-encode '(1 2 3)))))))))
  (princ total))
(kill-emacs 0)
