//! `windlass events`.

use clap::Args;
use windlass_client::ListOptions;
use windlass_core::{Doc, Env, Time};

use super::connect::{Connection, Session};
use super::output::print;
use super::table::{Table, printable};
use super::target::targets;

/// Options of `events`.
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    /// Only events about this object.
    #[arg(long = "for", value_name = "TYPE/NAME")]
    about: Option<String>,
    /// Events of all namespaces.
    #[arg(short = 'A', long)]
    all_namespaces: bool,
    #[command(flatten)]
    connection: Connection,
}

impl Arguments {
    /// Runs the command.
    pub(crate) async fn run(&self) -> anyhow::Result<()> {
        let session = self.connection.open().await?;
        let mut selector = String::new();
        if let Some(about) = &self.about {
            let targets = targets(&session, std::slice::from_ref(about)).await?;
            let named = targets.first().and_then(|target| {
                let name = target.names.first()?;
                Some((target.resource.gvk.kind().to_owned(), name.clone()))
            });
            let Some((kind, name)) = named else {
                anyhow::bail!("--for takes TYPE/NAME");
            };
            selector = format!("involvedObject.kind={kind},involvedObject.name={name}");
        }
        let events = events(&session, &selector, self.all_namespaces).await?;
        if events.is_empty() {
            match self.all_namespaces {
                true => eprintln!("No events found."),
                false => eprintln!("No events found in {} namespace.", session.namespace),
            }
            return Ok(());
        }
        print(&written(&events, self.all_namespaces));
        Ok(())
    }
}

/// The events that a field selector finds, oldest first.
pub(super) async fn events(
    session: &Session,
    selector: &str,
    is_in_all: bool,
) -> anyhow::Result<Vec<Doc>> {
    let resource = session.resource("events.v1.").await;
    let resource = match resource {
        Ok(resource) => resource,
        Err(_) => session.resource("events").await?,
    };
    let options = ListOptions {
        field_selector: selector.to_owned(),
        ..ListOptions::default()
    };
    let list = session.api(&resource, is_in_all).list_all(&options).await;
    let mut events = list.map_err(|error| session.explain(error))?.items;
    events.sort_by_key(|event| (seen(event), event.meta().key()));
    Ok(events)
}

/// When an event was last seen.
fn seen(event: &Doc) -> Time {
    let paths = ["/series/lastObservedTime", "/lastTimestamp", "/eventTime"];
    let written = paths.into_iter().map(|path| event.str_at(path));
    let time = written.filter_map(|text| {
        let micros = text.parse::<windlass_core::MicroTime>().ok();
        micros.map(windlass_core::MicroTime::to_time)
    });
    time.into_iter()
        .find(|time| !time.is_unset())
        .or(event.meta().creation_timestamp())
        .unwrap_or(Time::from_unix(0))
}

/// Events in columns.
pub(super) fn written(events: &[Doc], with_namespace: bool) -> String {
    let mut headings = vec!["LAST SEEN", "TYPE", "REASON", "OBJECT", "MESSAGE"];
    if with_namespace {
        headings.insert(0, "NAMESPACE");
    }
    let mut table = Table::new(&headings);
    let now = Env::real().now();
    for event in events {
        let count = event.at("/count").as_i64().unwrap_or(1);
        let age = age(now, seen(event));
        let age = match count {
            0 | 1 => age,
            count => format!("{age} (x{count})"),
        };
        let object = format!(
            "{}/{}",
            event.str_at("/involvedObject/kind"),
            event.str_at("/involvedObject/name")
        );
        let mut row = vec![
            age,
            event.str_at("/type").to_owned(),
            event.str_at("/reason").to_owned(),
            object,
            event.str_at("/message").to_owned(),
        ];
        if with_namespace {
            row.insert(0, event.meta().namespace().to_owned());
        }
        table.push(row.iter().map(|cell| printable(cell)).collect());
    }
    table.write()
}

/// How long ago something was, in the largest units that say enough.
pub(super) fn age(now: Time, then: Time) -> String {
    let seconds = now.since(then).as_secs();
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86400);
    match seconds {
        0..120 => format!("{seconds}s"),
        120..600 if !seconds.is_multiple_of(60) => format!("{minutes}m{}s", seconds % 60),
        120..10_800 => format!("{minutes}m"),
        10_800..28_800 if !minutes.is_multiple_of(60) => format!("{hours}h{}m", minutes % 60),
        10_800..172_800 => format!("{hours}h"),
        172_800..691_200 if !hours.is_multiple_of(24) => format!("{days}d{}h", hours % 24),
        _ => format!("{days}d"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_as_exact_as_they_are_young() {
        let ages = [
            (0, "0s"),
            (119, "119s"),
            (125, "2m5s"),
            (600, "10m"),
            (3600 * 3 + 60 * 5, "3h5m"),
            (3600 * 47, "47h"),
            (86400 * 2 + 3600, "2d1h"),
            (86400 * 9, "9d"),
        ];
        for (seconds, expected) in ages {
            let age = age(
                Time::from_unix(1_000_000 + seconds),
                Time::from_unix(1_000_000),
            );
            assert_eq!(age, expected);
        }
    }
}
