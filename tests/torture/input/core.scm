; SPDX-License-Identifier: MIT
; Continuations, exceptions, and callbacks from C (sort).
(define scale (string->number (cadr (command-line))))
(define (deep n k) (if (= n 0) (k 'bottom) (+ 1 (deep (- n 1) k))))
(define (round i)
  (+ (if (eq? (call/cc (lambda (k) (deep (modulo i 60) k))) 'bottom) 1 0)
     (catch #t (lambda () (error "x" i)) (lambda (key . args) (length args)))
     (car (sort (map (lambda (x) (modulo (* x 7) 31)) (iota 50 1)) (lambda (a b) (< a b))))
     (string-length (with-output-to-string (lambda () (write (iota 20)))))))
(display (let loop ((i 0) (sum 0)) (if (= i (* scale 100)) sum (loop (+ i 1) (+ sum (round i))))))
(newline)
