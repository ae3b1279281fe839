//! Commands and flags, as clap knows them.

use clap::{Arg, Command, CommandFactory as _};

/// The page.
pub(super) fn page() -> String {
    let mut command = crate::Arguments::command();
    command.build();
    let mut text =
        "# Commands\nAll commands end with 0 on success and with 1 on failure, after one \
        line that begins with `windlass: `. A flag that names a variable is also read from the \
        environment; the flag wins.\n"
            .to_owned();
    for command in command.get_subcommands() {
        if command.get_name() != "help" {
            text += &section(command);
        }
    }
    text
}

fn section(command: &Command) -> String {
    let about = command.get_about().map(ToString::to_string);
    let mut text = format!(
        "\n## windlass {}\n{}.\n",
        command.get_name(),
        about.unwrap_or_default().trim_end_matches('.')
    );
    let words: Vec<&Arg> = command.get_positionals().collect();
    let flags: Vec<&Arg> = command
        .get_arguments()
        .filter(|argument| !argument.is_positional() && argument.get_id() != "help")
        .collect();
    if words.is_empty() && flags.is_empty() {
        return text;
    }
    text += "\n| argument | meaning | default | variable |\n|---|---|---|---|\n";
    for argument in words.into_iter().chain(flags) {
        text += &row(argument);
    }
    text
}

fn row(argument: &Arg) -> String {
    let help = argument.get_help().map(ToString::to_string);
    let defaults: Vec<_> = argument
        .get_default_values()
        .iter()
        .map(|value| format!("`{}`", value.to_string_lossy()))
        .filter(|value| value != "``" && !is_switch(argument))
        .collect();
    let variable = argument
        .get_env()
        .map(|name| format!("`{}`", name.to_string_lossy()));
    format!(
        "| {} | {} | {} | {} |\n",
        name(argument),
        help.unwrap_or_default()
            .trim_end_matches('.')
            .replace('|', "\\|"),
        defaults.join(", "),
        variable.unwrap_or_default()
    )
}

/// Whether the argument is there or not, and takes no value.
fn is_switch(argument: &Arg) -> bool {
    !argument.get_action().takes_values()
}

fn name(argument: &Arg) -> String {
    let values = argument.get_value_names().unwrap_or_default();
    let value: Vec<_> = values.iter().map(|name| name.as_str()).collect();
    let value = value.join(" ");
    let Some(long) = argument.get_long() else {
        return format!("`{value}`");
    };
    let short = argument.get_short().map(|short| format!("`-{short}`, "));
    let value = match is_switch(argument) {
        true => String::new(),
        false => format!(" {value}"),
    };
    format!("{}`--{long}{value}`", short.unwrap_or_default())
}
