//! Deletes requests that nobody needs any more.

use std::{sync::Arc, time::Duration};

use windlass_cache::SharedInformer;
use windlass_client::{DeleteOptions, DynamicApi, DynamicClient};
use windlass_core::{Doc, Env, MicroTime, Time};
use windlass_runtime::{Manager, Result, Shutdown};
use x509_parser::{certificate::X509Certificate, prelude::FromDer};

use super::{conditions, is_issued, request::pem_body, requests};

/// The name of the controller, as kube-controller-manager has it.
pub const NAME: &str = "certificatesigningrequest-cleaner-controller";

/// The time between two looks at all requests.
const PERIOD: Duration = Duration::from_secs(60 * 60);
/// The time for which requests stay that were decided.
const DECIDED: Duration = Duration::from_secs(60 * 60);
/// The time for which requests stay that wait for something.
const WAITING: Duration = Duration::from_secs(24 * 60 * 60);

pub(super) fn add_to(manager: &Manager) {
    let gvr = requests().gvr().clone();
    let cleaner = Arc::new(Cleaner {
        requests: manager.factory().dynamic(gvr.clone()),
        api: DynamicClient::new(manager.client().clone()).resource(gvr),
        env: manager.env().clone(),
    });
    manager.add_task(NAME, move |shutdown| async move {
        cleaner.run(&shutdown).await;
        Result::Ok(())
    });
}

struct Cleaner {
    requests: SharedInformer,
    api: DynamicApi,
    env: Env,
}

impl Cleaner {
    /// Looks at all requests each hour. As upstream it does not wait for the cache, so that the
    /// first look may see nothing.
    async fn run(&self, shutdown: &Shutdown) {
        loop {
            self.clean().await;
            tokio::select! {
                () = shutdown.requested() => return,
                () = tokio::time::sleep(PERIOD) => {}
            }
        }
    }

    async fn clean(&self) {
        let now = self.env.now_micro();
        for request in self.requests.lister().snapshot().iter() {
            if !is_old(request.doc(), now) {
                continue;
            }
            let options = DeleteOptions::uid(request.uid().as_str());
            match self.api.delete(request.name(), &options).await {
                Ok(_) => tracing::info!(request = request.name(), "deleted: it is old"),
                Err(error) if error.is_not_found() => {}
                Err(error) => {
                    tracing::error!(request = request.name(), %error, "an old request was not deleted");
                }
            }
        }
    }
}

fn is_old(request: &Doc, now: MicroTime) -> bool {
    let is_older = |at: Option<Time>, than: Duration| {
        at.is_some_and(|at| now.since(MicroTime::from(at)) > than)
    };
    let decided = |kind: &str, than: Duration| {
        conditions(request, kind).any(|it| {
            let at: Option<Time> = it.str_at("/lastUpdateTime").parse().ok();
            is_older(at.filter(|at| !at.is_unset()), than)
        })
    };
    let is_pending = request.at("/status/conditions").items().is_empty();
    let is_approved = conditions(request, "Approved").next().is_some();
    let after_approval = if is_issued(request) { DECIDED } else { WAITING };
    decided("Approved", after_approval)
        || decided("Denied", DECIDED)
        || decided("Failed", DECIDED)
        || is_pending && is_older(request.meta().creation_timestamp(), WAITING)
        || is_approved && is_expired(request, now)
}

fn is_expired(request: &Doc, now: MicroTime) -> bool {
    let Some(der) = pem_body(request.str_at("/status/certificate"), "CERTIFICATE") else {
        return false;
    };
    X509Certificate::from_der(&der).is_ok_and(|(_, certificate)| {
        let end = Time::from_unix(certificate.validity().not_after.timestamp());
        now > MicroTime::from(end)
    })
}
