//! The `pollpace` program: arguments in, exit code out.

mod commands;

fn main() -> std::process::ExitCode {
    commands::main()
}
