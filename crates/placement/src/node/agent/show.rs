//! The status of a pod on its way to the server.

use tokio::time::Instant;
use windlass_client::{Error, WriteOptions};

use super::{Agent, memory::Known};
use crate::node::{
    NAME,
    behaviour::Behaviour,
    status::{Addresses, says_same, with_status},
};

/// What became of a status that was to be shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shown {
    /// The server has it, or the pod is gone.
    Yes,
    /// The pod is not as it was thought to be. It is now, and the status must be derived again.
    Outdated,
    /// Somebody else has overwritten it. It may be written again then.
    Later(Instant),
}

impl Agent {
    /// Writes the status of a pod, if it says something new: at most once for each change of its
    /// state, and never for the sake of timestamps alone.
    pub(super) async fn show(&self, known: &mut Known, does: &Behaviour) -> Result<Shown, Error> {
        let addresses = self.addresses(known);
        let times = (Instant::now(), self.env.now());
        let shown = with_status(&known.pod, &known.run, does, &addresses, times);
        let status = shown.at("/status");
        if says_same(known.pod.at("/status"), status) {
            return Ok(Shown::Yes);
        }
        if let Some(later) = known.writes_at(status, times.0) {
            return Ok(Shown::Later(later));
        }
        let meta = known.pod.meta();
        let api = self.pods.clone().namespaced(meta.namespace());
        let options = WriteOptions::manager(NAME);
        match api.update_status(&shown, &options).await {
            Ok(written) => known.has_written(written, times.0),
            Err(error) if error.is_conflict() => {
                let live = api.get(meta.name()).await?;
                if live.meta().uid_str() != meta.uid_str() {
                    known.run.is_gone = true;
                    return Ok(Shown::Yes);
                }
                known.has_read(live);
                return Ok(Shown::Outdated);
            }
            Err(error) if error.is_not_found() => {
                known.run.is_gone = true;
                return Ok(Shown::Yes);
            }
            Err(error) => return Err(error),
        }
        if known.run.ended.is_some() {
            self.unprepare(&known.pod);
        }
        Ok(Shown::Yes)
    }

    fn addresses(&self, known: &Known) -> Addresses {
        let host = self.host_address(known.pod.str_at("/spec/nodeName"));
        let is_on_host = known.pod.at("/spec/hostNetwork").as_bool() == Some(true);
        let pod = if is_on_host {
            host.clone()
        } else {
            known.address()
        };
        Addresses { host, pod }
    }
}
