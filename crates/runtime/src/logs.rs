//! Logs: text for people on a terminal, JSON otherwise.

use std::{fmt, io::IsTerminal};

use clap::ValueEnum;
use serde_json::{Map, Value};
use tracing::{
    Event, Level, Subscriber,
    field::{Field, Visit},
};
use tracing_subscriber::{
    EnvFilter,
    fmt::{FmtContext, FormatEvent, FormatFields, FormattedFields, format::Writer},
    registry::LookupSpan,
};

use windlass_core::Env;

/// The format of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LoggingFormat {
    /// Lines for people.
    Text,
    /// One JSON object per line.
    Json,
}

/// Starts logging to the standard error, unless somebody else has done so. `RUST_LOG` is heard.
pub(crate) fn start(verbosity: u8, format: Option<LoggingFormat>) {
    let level = match verbosity {
        0..4 => Level::INFO,
        4..6 => Level::DEBUG,
        _ => Level::TRACE,
    };
    let filter = EnvFilter::builder()
        .with_default_directive(level.into())
        .from_env_lossy();
    let is_terminal = std::io::stderr().is_terminal();
    let is_json = format.map_or(!is_terminal, |format| format == LoggingFormat::Json);
    let logs = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr);
    // An error means that the program has set up logs of its own, which then stand.
    let _ = if is_json {
        tracing::subscriber::set_global_default(
            logs.with_ansi(false)
                .event_format(Json { env: Env::real() })
                .finish(),
        )
    } else {
        tracing::subscriber::set_global_default(logs.with_ansi(is_terminal).finish())
    };
}

/// One JSON object per line, with the field names of Kubernetes' own logs.
struct Json {
    env: Env,
}

impl<S, N> FormatEvent<S, N> for Json
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        cx: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let mut line = Map::new();
        let now = self.env.now_micro();
        line.insert("ts".to_owned(), (now.unix_micros() as f64 / 1000.0).into());
        let level = event.metadata().level().as_str().to_lowercase();
        line.insert("level".to_owned(), level.into());
        line.insert("logger".to_owned(), event.metadata().target().into());
        for span in cx
            .event_scope()
            .into_iter()
            .flat_map(|scope| scope.from_root())
        {
            let extensions = span.extensions();
            if let Some(fields) = extensions.get::<FormattedFields<N>>() {
                line.insert(span.name().to_owned(), fields.fields.clone().into());
            }
        }
        event.record(&mut Fields(&mut line));
        writeln!(writer, "{}", Value::Object(line))
    }
}

struct Fields<'a>(&'a mut Map<String, Value>);

impl Fields<'_> {
    fn insert(&mut self, field: &Field, value: Value) {
        let name = if field.name() == "message" {
            "msg"
        } else {
            field.name()
        };
        self.0.insert(name.to_owned(), value);
    }
}

impl Visit for Fields<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.insert(field, format!("{value:?}").into());
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.insert(field, value.into());
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.insert(field, value.into());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.insert(field, value.into());
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.insert(field, value.into());
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::sync::Arc;

    use parking_lot::Mutex;
    use tracing_subscriber::fmt::MakeWriter;

    use super::*;

    /// The lines that were logged.
    #[derive(Clone, Default)]
    pub(crate) struct Lines(pub(crate) Arc<Mutex<Vec<u8>>>);

    impl std::io::Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    impl<'a> MakeWriter<'a> for Lines {
        type Writer = Self;

        fn make_writer(&'a self) -> Self {
            self.clone()
        }
    }

    #[test]
    fn a_line_of_json_holds_message_fields_and_spans() {
        let lines = Lines::default();
        let logs = tracing_subscriber::fmt()
            .with_writer(lines.clone())
            .event_format(Json {
                env: Env::seeded(1),
            })
            .finish();
        tracing::subscriber::with_default(logs, || {
            let _span = tracing::info_span!("reconcile", object = "a/b").entered();
            tracing::warn!(retries = 3, reason = "a \"quoted\" word", "went wrong");
        });
        let line: Value = serde_json::from_slice(&lines.0.lock()).unwrap();
        assert_eq!(line["msg"], "went wrong");
        assert_eq!(line["level"], "warn");
        assert_eq!(line["retries"], 3);
        assert_eq!(line["reason"], "a \"quoted\" word");
        assert!(line["reconcile"].as_str().unwrap().contains("a/b"));
    }
}
