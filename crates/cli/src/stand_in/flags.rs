//! Flags as the libraries of Kubernetes and etcd read them.

use std::collections::BTreeMap;
use std::net::IpAddr;

/// One flag of a program.
#[derive(Clone, Copy, Debug)]
pub(super) struct Flag {
    /// The name, without dashes.
    pub(super) name: &'static str,
    /// The type of its value, as the help of the program names it.
    pub(super) value_type: &'static str,
    /// The effect it has here.
    pub(super) effect: Effect,
}

/// The effect of a flag on a stand-in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    /// It is obeyed.
    Used,
    /// It concerns what a stand-in does not have, and no client can tell.
    Quiet,
    /// It is accepted with a warning: a client might miss its effect.
    Ignored,
}

/// The dialect of a command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dialect {
    /// That of pflag: two dashes, and one-letter flags with one.
    Pflag,
    /// That of Go's own package: one dash or two.
    Go,
}

/// The flags that were given, each with all its values.
#[derive(Clone, Debug, Default)]
pub(super) struct GivenFlags(BTreeMap<&'static str, Vec<String>>);

/// The request of a command line.
#[derive(Clone, Debug)]
pub(super) enum CommandLine {
    /// To run.
    Run(GivenFlags),
    /// To print the help.
    Help,
    /// To print the version.
    Version,
}

impl Flag {
    /// The flags of a table: one on each line, with its type and its effect.
    pub(super) fn table(text: &'static str) -> Vec<Self> {
        let read = |line: &'static str| {
            let mut words = line.split(' ');
            let (name, value_type) = (words.next()?, words.next()?);
            let effect = match words.next()? {
                "used" => Effect::Used,
                "quiet" => Effect::Quiet,
                _ => Effect::Ignored,
            };
            Some(Self {
                name,
                value_type,
                effect,
            })
        };
        text.lines().filter_map(read).collect()
    }

    fn is_bool(&self) -> bool {
        self.value_type == "bool"
    }

    /// Refuses a value of another type, in the words of pflag.
    fn check(&self, value: &str) -> Result<(), String> {
        let why = match self.value_type {
            "bool" if parse_bool(value).is_none() => {
                format!("strconv.ParseBool: parsing {value:?}: invalid syntax")
            }
            "int" if value.parse::<i64>().is_err() => {
                format!("strconv.ParseInt: parsing {value:?}: invalid syntax")
            }
            "ip" if value.trim().parse::<IpAddr>().is_err() => {
                format!("failed to parse IP: {value:?}")
            }
            _ => return Ok(()),
        };
        Err(format!(
            "invalid argument {value:?} for \"--{}\" flag: {why}",
            self.name
        ))
    }
}

/// A truth value as Go reads it.
pub(super) fn parse_bool(value: &str) -> Option<bool> {
    match value {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Some(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Some(false),
        _ => None,
    }
}

impl CommandLine {
    /// Reads a command line; the error is the line that the program prints.
    pub(super) fn read(
        program: &str,
        table: &[Flag],
        dialect: Dialect,
        words: &[String],
    ) -> Result<Self, String> {
        let mut given = GivenFlags::default();
        let mut rest = words.iter();
        let mut extra = Vec::new();
        while let Some(word) = rest.next() {
            if word == "--" {
                extra.extend(rest.by_ref().cloned());
                break;
            }
            let Some(text) = flag_text(word, dialect) else {
                extra.push(word.clone());
                continue;
            };
            let (name, value) = match text.split_once('=') {
                Some((name, value)) => (name, Some(value.to_owned())),
                None => (text.as_str(), None),
            };
            match name {
                "help" | "h" => return Ok(Self::Help),
                "version" => return Ok(Self::Version),
                _ => {}
            }
            let flag = table.iter().find(|flag| flag.name == name);
            let flag = flag.ok_or_else(|| unknown(name, dialect))?;
            let value = match value {
                Some(value) => value,
                None if flag.is_bool() => "true".to_owned(),
                None => rest.next().cloned().ok_or_else(|| missing(name, dialect))?,
            };
            flag.check(&value)?;
            given.0.entry(flag.name).or_default().push(value);
        }
        match extra.is_empty() {
            true => Ok(Self::Run(given)),
            false => Err(format!(
                "{program:?} does not take any arguments, got {extra:?}"
            )),
        }
    }
}

/// The name of a flag and its value; nothing if the word is not a flag.
fn flag_text(word: &str, dialect: Dialect) -> Option<String> {
    if let Some(text) = word.strip_prefix("--") {
        return Some(text.to_owned());
    }
    let text = word.strip_prefix('-').filter(|text| !text.is_empty())?;
    match dialect {
        Dialect::Go => Some(text.to_owned()),
        // `-v2`, `-v=2` and `-v` are the same flag.
        Dialect::Pflag => {
            let (letter, value) = text.split_at(text.chars().next()?.len_utf8());
            let value = value.strip_prefix('=').unwrap_or(value);
            Some(match value {
                "" => letter.to_owned(),
                value => format!("{letter}={value}"),
            })
        }
    }
}

fn unknown(name: &str, dialect: Dialect) -> String {
    match dialect {
        Dialect::Pflag => format!("unknown flag: --{name}"),
        Dialect::Go => format!("flag provided but not defined: -{name}"),
    }
}

fn missing(name: &str, dialect: Dialect) -> String {
    match dialect {
        Dialect::Pflag => format!("flag needs an argument: --{name}"),
        Dialect::Go => format!("flag needs an argument: -{name}"),
    }
}

impl GivenFlags {
    /// The last value of a flag.
    pub(super) fn last(&self, name: &str) -> Option<&str> {
        self.0.get(name)?.last().map(String::as_str)
    }

    /// All values of a flag.
    pub(super) fn all(&self, name: &str) -> Vec<String> {
        self.0.get(name).cloned().unwrap_or_default()
    }

    /// All values of a flag whose values are lists with commas.
    pub(super) fn list(&self, name: &str) -> Vec<String> {
        let all = self.all(name);
        let words = all.iter().flat_map(|value| value.split(','));
        words
            .map(str::trim)
            .filter(|word| !word.is_empty())
            .map(str::to_owned)
            .collect()
    }

    /// The names of the flags that were given and have an effect.
    pub(super) fn with_effect<'a>(
        &'a self,
        table: &'a [Flag],
        effect: Effect,
    ) -> impl Iterator<Item = &'a str> {
        table
            .iter()
            .filter(move |flag| flag.effect == effect && self.0.contains_key(flag.name))
            .map(|flag| flag.name)
    }
}

/// The flags as a help text lists them, each on a line of its own.
pub(super) fn help(table: &[Flag]) -> String {
    let mut text = String::new();
    for flag in table {
        let value = match flag.is_bool() {
            true => String::new(),
            false => format!(" {}", flag.value_type),
        };
        let about = match flag.effect {
            Effect::Used => "",
            Effect::Quiet => "accepted; a stand-in has nothing to apply it to",
            Effect::Ignored => "accepted with a warning; has no effect here",
        };
        let line = format!("      --{}{value}", flag.name);
        text += format!("{line:<60} {about}").trim_end();
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(words: &[&str], dialect: Dialect) -> Result<CommandLine, String> {
        let table =
            Flag::table("secure-port int used\nallow-privileged bool quiet\nv Level used\n");
        let words: Vec<String> = words.iter().map(|&word| word.to_owned()).collect();
        CommandLine::read("kube-apiserver", &table, dialect, &words)
    }

    fn given(words: &[&str]) -> GivenFlags {
        match read(words, Dialect::Pflag) {
            Ok(CommandLine::Run(given)) => given,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn values_stand_after_a_sign_or_a_space() {
        for words in [&["--secure-port=1"][..], &["--secure-port", "1"]] {
            assert_eq!(given(words).last("secure-port"), Some("1"));
        }
        assert_eq!(
            given(&["--allow-privileged"]).last("allow-privileged"),
            Some("true")
        );
        for words in [&["-v=2"][..], &["-v2"], &["-v", "2"], &["--v=2"]] {
            assert_eq!(given(words).last("v"), Some("2"));
        }
    }

    #[test]
    fn mistakes_are_told_in_the_words_of_the_original() {
        let error = |words: &[&str]| read(words, Dialect::Pflag).unwrap_err();
        assert_eq!(error(&["--nonsense"]), "unknown flag: --nonsense");
        assert_eq!(
            error(&["--secure-port"]),
            "flag needs an argument: --secure-port"
        );
        assert_eq!(
            error(&["--allow-privileged=maybe"]),
            "invalid argument \"maybe\" for \"--allow-privileged\" flag: strconv.ParseBool: \
             parsing \"maybe\": invalid syntax"
        );
        assert_eq!(
            error(&["extra"]),
            "\"kube-apiserver\" does not take any arguments, got [\"extra\"]"
        );
        let go = read(&["-nonsense"], Dialect::Go).unwrap_err();
        assert_eq!(go, "flag provided but not defined: -nonsense");
    }
}
