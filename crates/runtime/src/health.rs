//! Health checks, and the text in which they are told.

use std::{fmt, sync::Arc};

/// A check: whether one part of the process works. It is asked each time and must be quick.
#[derive(Clone)]
pub struct Check {
    name: String,
    check: Arc<dyn Fn() -> Result<(), CheckFailed> + Send + Sync>,
}

/// A check has failed. The reason goes to the log, not to whoever asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct CheckFailed {
    reason: String,
}

impl CheckFailed {
    /// A failure in words.
    pub fn new(reason: impl Into<String>) -> Self {
        Self {
            reason: reason.into(),
        }
    }
}

impl Check {
    /// A check by name.
    pub fn new(
        name: impl Into<String>,
        check: impl Fn() -> Result<(), CheckFailed> + Send + Sync + 'static,
    ) -> Self {
        Self {
            name: name.into(),
            check: Arc::new(check),
        }
    }

    /// The check that always succeeds: the process answers.
    #[must_use]
    pub fn ping() -> Self {
        Self::new("ping", || Ok(()))
    }

    /// The name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Asks.
    ///
    /// # Errors
    /// When the part does not work.
    pub fn check(&self) -> Result<(), CheckFailed> {
        (self.check)()
    }
}

impl fmt::Debug for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Check({})", self.name)
    }
}

/// A health report: a status code and a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HealthReport {
    pub(crate) code: u16,
    pub(crate) text: String,
}

/// Asks all checks under an endpoint such as `healthz`, or the one that `only` names.
pub(crate) fn report(
    endpoint: &str,
    checks: &[Check],
    only: Option<&str>,
    query: &str,
) -> HealthReport {
    let ping = [Check::ping()];
    let checks = if checks.is_empty() { &ping[..] } else { checks };
    match only {
        Some(name) => one(checks, name),
        None => all(endpoint, checks, query),
    }
}

fn one(checks: &[Check], name: &str) -> HealthReport {
    let Some(check) = checks.iter().find(|check| check.name() == name) else {
        return HealthReport {
            code: 404,
            text: "404 page not found\n".to_owned(),
        };
    };
    match check.check() {
        Ok(()) => HealthReport {
            code: 200,
            text: "ok".to_owned(),
        },
        Err(error) => HealthReport {
            code: 500,
            text: format!("internal server error: {error}\n"),
        },
    }
}

fn all(endpoint: &str, checks: &[Check], query: &str) -> HealthReport {
    let values = |name: &str| {
        let pairs = query
            .split('&')
            .map(|pair| pair.split_once('=').unwrap_or((pair, "")));
        pairs
            .filter(|(key, _)| *key == name)
            .map(|(_, value)| value.to_owned())
            .collect::<Vec<_>>()
    };
    let (is_verbose, mut excluded) = (!values("verbose").is_empty(), values("exclude"));
    let (mut text, mut is_healthy) = (String::new(), true);
    for check in checks {
        let name = check.name();
        if let Some(at) = excluded.iter().position(|excluded| excluded == name) {
            excluded.swap_remove(at);
            text += &format!("[+]{name} excluded: ok\n");
            continue;
        }
        match check.check() {
            Ok(()) => text += &format!("[+]{name} ok\n"),
            Err(error) => {
                tracing::warn!(check = name, %error, "{endpoint} check failed");
                text += &format!("[-]{name} failed: reason withheld\n");
                is_healthy = false;
            }
        }
    }
    if !excluded.is_empty() {
        excluded.sort_unstable();
        let names = excluded.join("\", \"");
        text +=
            &format!("warn: some health checks cannot be excluded: no matches for \"{names}\"\n");
    }
    match (is_healthy, is_verbose) {
        (false, _) => HealthReport {
            code: 500,
            text: format!("{text}{endpoint} check failed\n"),
        },
        (true, true) => HealthReport {
            code: 200,
            text: format!("{text}{endpoint} check passed\n"),
        },
        (true, false) => HealthReport {
            code: 200,
            text: "ok".to_owned(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checks() -> Vec<Check> {
        vec![
            Check::ping(),
            Check::new("disk", || Err(CheckFailed::new("full"))),
        ]
    }

    #[test]
    fn an_endpoint_tells_of_all_checks() {
        let ask = |query| report("healthz", &checks(), None, query);
        let failed = ask("");
        assert_eq!(failed.code, 500);
        let text = "[+]ping ok\n[-]disk failed: reason withheld\nhealthz check failed\n";
        assert_eq!(failed.text, text);
        assert_eq!(
            ask("exclude=disk"),
            HealthReport {
                code: 200,
                text: "ok".to_owned()
            }
        );
        let text = "[+]ping ok\n[+]disk excluded: ok\nhealthz check passed\n";
        assert_eq!(ask("exclude=disk&verbose").text, text);
        assert!(
            ask("exclude=tape&exclude=disk&verbose")
                .text
                .contains("no matches for \"tape\"")
        );
    }

    #[test]
    fn one_check_can_be_asked_by_name() {
        let ask = |name| report("healthz", &checks(), Some(name), "").code;
        assert_eq!((ask("ping"), ask("disk"), ask("tape")), (200, 500, 404));
    }

    #[test]
    fn without_checks_there_is_ping() {
        assert_eq!(report("readyz", &[], None, "").text, "ok");
        assert_eq!(
            report("readyz", &[], None, "verbose").text,
            "[+]ping ok\nreadyz check passed\n"
        );
    }
}
