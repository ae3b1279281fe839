//! `windlass why`: what the controllers did about an object, and what made them.

use clap::Args;

use super::connect::Connection;
use super::output::print;
use super::target::targets;

/// Options of `why`.
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    /// The object: TYPE/NAME, or TYPE NAME.
    #[arg(required = true, value_name = "TYPE/NAME")]
    words: Vec<String>,
    #[command(flatten)]
    connection: Connection,
}

impl Arguments {
    /// Runs the command.
    pub(crate) async fn run(&self) -> anyhow::Result<()> {
        let session = self.connection.open().await?;
        for target in targets(&session, &self.words).await? {
            anyhow::ensure!(target.is_named(), "say which object: TYPE/NAME");
            for name in &target.names {
                let key = match target.resource.is_namespaced {
                    true => format!("{}/{name}", session.namespace),
                    false => name.clone(),
                };
                let request = session.client.get("/debug/windlass/why").param("key", &key);
                let text = request.bytes().await.map_err(|error| {
                    let is_absent = error.is_not_found();
                    let error = session.explain(error);
                    match is_absent {
                        true => error.context("this server runs no windlass controllers"),
                        false => error,
                    }
                })?;
                print(&String::from_utf8_lossy(&text));
            }
        }
        Ok(())
    }
}
