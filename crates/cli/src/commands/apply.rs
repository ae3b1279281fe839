//! `windlass apply`.

use std::path::PathBuf;

use clap::Args;
use windlass_client::{Patch, WriteOptions};

use super::connect::{Connection, Session};
use super::manifest::{self, Manifest};
use super::output::print;
use super::target::title;

/// Who owns the fields that this command sets.
const MANAGER: &str = "windlass";

/// Options of `apply`.
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    /// Files or directories with objects; `-` is standard input.
    #[arg(short, long = "filename", required = true, value_name = "FILE")]
    filenames: Vec<PathBuf>,
    /// Take over fields that somebody else has set to another value.
    #[arg(long)]
    force_conflicts: bool,
    /// Go through all checks and change nothing.
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    connection: Connection,
}

impl Arguments {
    /// Runs the command.
    pub(crate) async fn run(&self) -> anyhow::Result<()> {
        let manifests = manifest::read(&self.filenames)?;
        let session = self.connection.open().await?;
        let mut failures = 0;
        for manifest in &manifests {
            // One bad object does not keep the others back.
            if let Err(error) = self.apply(&session, manifest).await {
                eprintln!("{}: {error:#}", manifest.source);
                failures += 1;
            }
        }
        anyhow::ensure!(
            failures == 0,
            "{failures} of {} objects were not applied",
            manifests.len()
        );
        Ok(())
    }

    async fn apply(&self, session: &Session, manifest: &Manifest) -> anyhow::Result<()> {
        let object = &manifest.object;
        let (resource, api) = session.api_of(object).await?;
        let name = object.meta().name();
        let before = match api.get(name).await {
            Err(error) if error.is_not_found() => None,
            before => Some(before.map_err(|error| session.explain(error))?),
        };
        let options = WriteOptions {
            is_forced: self.force_conflicts,
            is_dry_run: self.dry_run,
            ..WriteOptions::manager(MANAGER)
        };
        let patch = Patch::Apply(object.clone());
        let after = api.patch(name, &patch, &options).await;
        let after = after.map_err(|error| session.explain(error))?;
        let version = |object: &windlass_core::Doc| object.meta().resource_version().to_owned();
        let outcome = match before {
            None => "created",
            Some(before) if version(&before) == version(&after) => "unchanged",
            Some(_) => "configured",
        };
        let dry = if self.dry_run {
            " (server dry run)"
        } else {
            ""
        };
        print(&format!("{} {outcome}{dry}\n", title(&resource, name)));
        Ok(())
    }
}
