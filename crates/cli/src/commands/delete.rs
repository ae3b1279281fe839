//! `windlass delete`.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::bail;
use clap::{Args, ValueEnum};
use windlass_client::{
    ApiResource, DeleteOptions, Deletion, DynamicApi, ListOptions, Propagation, WatchEvent,
    WatchOptions,
};
use windlass_core::Doc;

use super::connect::{Connection, Session};
use super::manifest;
use super::output::print;
use super::target::{targets, title};

/// Options of `delete`.
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    /// What to delete: TYPE NAME..., or TYPE/NAME...
    #[arg(value_name = "TYPE[/NAME]", conflicts_with = "filenames")]
    words: Vec<String>,
    /// Files or directories with the objects to delete; `-` is standard input.
    #[arg(short, long = "filename", value_name = "FILE")]
    filenames: Vec<PathBuf>,
    /// All objects of the type in the namespace.
    #[arg(long)]
    all: bool,
    /// Objects with these labels.
    #[arg(short = 'l', long, value_name = "LABELS", default_value = "")]
    selector: String,
    /// What happens to the dependents.
    #[arg(long, value_enum, default_value_t)]
    cascade: Cascade,
    /// How long the objects may take to shut down, in seconds.
    #[arg(long, value_name = "SECONDS")]
    grace_period: Option<u64>,
    /// Return at once instead of waiting until the objects are gone.
    #[arg(long)]
    no_wait: bool,
    /// How long to wait, in seconds; zero for as long as it takes.
    #[arg(long, value_name = "SECONDS", default_value_t = 0)]
    timeout: u64,
    /// Objects that do not exist are no error.
    #[arg(long)]
    ignore_not_found: bool,
    #[command(flatten)]
    connection: Connection,
}

/// What happens to the dependents of an object.
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum Cascade {
    /// They are deleted afterwards.
    #[default]
    Background,
    /// They are deleted first.
    Foreground,
    /// They stay.
    Orphan,
}

/// One object to delete.
struct Doomed {
    resource: ApiResource,
    api: DynamicApi,
    name: String,
}

impl Arguments {
    /// Runs the command.
    pub(crate) async fn run(&self) -> anyhow::Result<()> {
        let session = self.connection.open().await?;
        let doomed = match self.filenames.is_empty() {
            true => self.named(&session).await?,
            false => self.written(&session).await?,
        };
        if doomed.is_empty() {
            print("No resources found\n");
            return Ok(());
        }
        let mut failures = 0;
        let mut leaving = Vec::new();
        for doomed in doomed {
            match self.delete(&session, &doomed).await {
                Ok(Some(object)) => leaving.push((doomed, object)),
                Ok(None) => {}
                Err(error) => {
                    eprintln!("{error:#}");
                    failures += 1;
                }
            }
        }
        if !self.no_wait {
            self.wait(&leaving).await?;
        }
        anyhow::ensure!(failures == 0, "{failures} objects were not deleted");
        Ok(())
    }

    async fn named(&self, session: &Session) -> anyhow::Result<Vec<Doomed>> {
        let is_selecting = self.all || !self.selector.is_empty();
        let mut doomed = Vec::new();
        for target in targets(session, &self.words).await? {
            let api = session.api(&target.resource, false);
            let mut names = target.names.clone();
            match (target.is_named(), is_selecting) {
                (true, true) => bail!("objects are named, or selected, but not both"),
                (false, false) => bail!(
                    "resource(s) were provided, but no name was specified; use --all or a selector"
                ),
                (true, false) => {}
                (false, true) => {
                    let options = ListOptions {
                        label_selector: self.selector.clone(),
                        ..ListOptions::default()
                    };
                    let list = api.list_all(&options).await;
                    let list = list.map_err(|error| session.explain(error))?;
                    let found = list.items.iter().map(|item| item.meta().name().to_owned());
                    names = found.collect();
                }
            }
            doomed.extend(names.into_iter().map(|name| Doomed {
                resource: target.resource.clone(),
                api: api.clone(),
                name,
            }));
        }
        Ok(doomed)
    }

    async fn written(&self, session: &Session) -> anyhow::Result<Vec<Doomed>> {
        let mut doomed = Vec::new();
        for manifest in manifest::read(&self.filenames)? {
            let (resource, api) = session.api_of(&manifest.object).await?;
            let name = manifest.object.meta().name().to_owned();
            doomed.push(Doomed {
                resource,
                api,
                name,
            });
        }
        Ok(doomed)
    }

    /// Deletes the object that has the name now, and no other. Answers with the object if it
    /// takes its time to go.
    async fn delete(&self, session: &Session, doomed: &Doomed) -> anyhow::Result<Option<Doc>> {
        let Doomed { api, name, .. } = doomed;
        let object = match api.get(name).await {
            Err(error) if error.is_not_found() && self.ignore_not_found => return Ok(None),
            object => object.map_err(|error| session.explain(error))?,
        };
        let options = DeleteOptions {
            uid: Some(object.meta().uid_str().to_owned()),
            propagation: Some(match self.cascade {
                Cascade::Background => Propagation::Background,
                Cascade::Foreground => Propagation::Foreground,
                Cascade::Orphan => Propagation::Orphan,
            }),
            grace_period: self.grace_period.map(Duration::from_secs),
            ..DeleteOptions::default()
        };
        let deletion = api.delete(name, &options).await;
        let deletion = deletion.map_err(|error| session.explain(error))?;
        print(&format!("{} deleted\n", title(&doomed.resource, name)));
        Ok(match deletion {
            Deletion::Done(_) => None,
            Deletion::Started(_) => Some(object),
        })
    }

    async fn wait(&self, leaving: &[(Doomed, Doc)]) -> anyhow::Result<()> {
        let waiting = async {
            for (doomed, object) in leaving {
                wait_for_end(doomed, object.meta().uid_str()).await?;
            }
            anyhow::Ok(())
        };
        match self.timeout {
            0 => waiting.await,
            seconds => tokio::time::timeout(Duration::from_secs(seconds), waiting)
                .await
                .unwrap_or_else(|_| bail!("timed out waiting for the objects to be gone")),
        }
    }
}

/// Waits until the object of this uid is gone, even if another of its name comes.
async fn wait_for_end(doomed: &Doomed, uid: &str) -> anyhow::Result<()> {
    loop {
        let version = match doomed.api.get(&doomed.name).await {
            Ok(object) if object.meta().uid_str() == uid => {
                object.meta().resource_version().to_owned()
            }
            Ok(_) => return Ok(()),
            Err(error) if error.is_not_found() => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        let options = WatchOptions {
            field_selector: format!("metadata.name={}", doomed.name),
            resource_version: version,
            ..WatchOptions::default()
        };
        let mut watch = doomed.api.watch(&options).await?;
        // Whatever ends the watch, the next look tells where things stand.
        while let Some(Ok(event)) = watch.next().await {
            if matches!(&event, WatchEvent::Deleted(object) if object.meta().uid_str() == uid) {
                return Ok(());
            }
        }
    }
}
