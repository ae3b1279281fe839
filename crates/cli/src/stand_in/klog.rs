//! Log lines in the format of klog, which people and scripts look for in the output of
//! kube-apiserver.

use std::fmt;

use tracing::{Event, Level, Subscriber};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;
use windlass_core::Env;

/// The format: severity, date, process, place, message and fields.
pub(super) struct KlogFormat {
    env: Env,
}

impl KlogFormat {
    /// The format with the time of an environment.
    pub(super) fn new(env: Env) -> Self {
        Self { env }
    }

    /// The head of a line, up to the message.
    fn head(&self, severity: char, place: &str) -> String {
        // 2006-01-02T15:04:05.000000Z
        let now = self.env.now_micro().to_string();
        let part = |from, to| now.get(from..to).unwrap_or_default();
        format!(
            "{severity}{}{} {} {:>7} {place}]",
            part(5, 7),
            part(8, 10),
            part(11, 26),
            std::process::id()
        )
    }

    /// The line with which kube-apiserver ends when it cannot run.
    pub(super) fn failure(&self, error: &str) -> String {
        format!(
            "{} \"command failed\" err={error:?}",
            self.head('E', "run.go:72")
        )
    }
}

impl<S, N> FormatEvent<S, N> for KlogFormat
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let metadata = event.metadata();
        let severity = match *metadata.level() {
            Level::ERROR => 'E',
            Level::WARN => 'W',
            _ => 'I',
        };
        let file = metadata.file().unwrap_or("windlass");
        let file = file.rsplit('/').next().unwrap_or(file);
        let place = format!("{file}:{}", metadata.line().unwrap_or_default());
        writer.write_str(&self.head(severity, &place))?;
        writer.write_char(' ')?;
        context.format_fields(writer.by_ref(), event)?;
        writer.write_char('\n')
    }
}
