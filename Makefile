# Forwards only; the tasks themselves are in xtask.
.PHONY: up test tidy bench envtest ci
up:      ; cargo run --release -- up
test:    ; cargo test --workspace
tidy:    ; cargo xtask tidy
bench:   ; cargo xtask bench $(NAME) --peers
envtest: ; cargo xtask envtest build
ci:      ; bash .ci/run
