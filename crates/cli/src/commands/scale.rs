//! `windlass scale`.

use anyhow::bail;
use clap::Args;
use windlass_client::{Patch, WriteOptions};
use windlass_core::doc;

use super::connect::Connection;
use super::output::print;
use super::target::{targets, title};

/// Options of `scale`.
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    /// What to scale: TYPE NAME..., or TYPE/NAME...
    #[arg(required = true, value_name = "TYPE/NAME")]
    words: Vec<String>,
    /// How many there shall be.
    #[arg(long, required = true, value_name = "NUMBER")]
    replicas: u32,
    /// Only if there are to be this many now.
    #[arg(long, value_name = "NUMBER")]
    current_replicas: Option<i64>,
    #[command(flatten)]
    connection: Connection,
}

impl Arguments {
    /// Runs the command.
    pub(crate) async fn run(&self) -> anyhow::Result<()> {
        let session = self.connection.open().await?;
        for target in targets(&session, &self.words).await? {
            let api = session.api(&target.resource, false);
            if !target.is_named() {
                bail!("say which {} to scale", target.resource.gvr.resource());
            }
            if !target
                .resource
                .subresources
                .iter()
                .any(|part| part == "scale")
            {
                bail!("{} cannot be scaled", target.resource.gvr.resource());
            }
            for name in &target.names {
                let mut patch = doc!({ "spec": { "replicas": i64::from(self.replicas) } });
                if let Some(expected) = self.current_replicas {
                    let scale = api.get_part(name, "scale").await;
                    let scale = scale.map_err(|error| session.explain(error))?;
                    let found = scale.at("/spec/replicas").as_i64().unwrap_or(0);
                    if found != expected {
                        bail!("Expected replicas to be {expected}, was {found}");
                    }
                    // The server refuses the patch if somebody was faster.
                    let version = scale.at("/metadata/resourceVersion").clone();
                    patch = patch.with("/metadata/resourceVersion", version)?;
                }
                let options = WriteOptions::manager("windlass");
                let scaled = api
                    .patch_part(name, "scale", &Patch::Merge(patch), &options)
                    .await;
                scaled.map_err(|error| session.explain(error))?;
                print(&format!("{} scaled\n", title(&target.resource, name)));
            }
        }
        Ok(())
    }
}
