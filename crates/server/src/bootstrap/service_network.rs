//! The default ServiceCIDR: the network that the server was started with.

use windlass_core::{Doc, doc};

use super::First;
use crate::rest::{self, Operation};
use crate::server::Server;
use windlass_access::User;
use windlass_rules::status::Status;

const GROUP: &str = "networking.k8s.io";
const PLURAL: &str = "servicecidrs";
/// Upstream's names of the object, and of the part of the server that marks it.
const NAME: &str = "kubernetes";
const MANAGER: &str = "kubernetes-service-cidr-controller";

/// The object that is there from the start.
pub(super) fn object(server: &Server) -> First {
    let network = server.inner().allocator.network().to_string();
    let object = doc!({
        "apiVersion": "networking.k8s.io/v1", "kind": "ServiceCIDR",
        "metadata": { "name": NAME }, "spec": { "cidrs": [network] }
    });
    (GROUP, "v1", PLURAL, object)
}

/// Says that the network is ready, unless something was said about it, or it is not the one of this
/// server.
pub(super) async fn mark_ready(server: &Server) -> Result<(), Status> {
    let Some(known) = server.inner().storage.find(GROUP, PLURAL, "", NAME) else {
        return Ok(());
    };
    let (.., wanted) = object(server);
    let is_marked = !known.at("/status/conditions").items().is_empty();
    let is_other = known.at("/spec/cidrs") != wanted.at("/spec/cidrs");
    if is_marked || is_other || known.meta().is_deleting() {
        return Ok(());
    }
    let table = server.inner().registry.table();
    let resource = table.find(GROUP, "v1", PLURAL);
    let operation = Operation {
        server,
        resource: resource.ok_or_else(Status::no_such_path)?,
        namespace: "",
        name: NAME,
        subresource: "status",
        user: &User::server(),
        request: None,
    };
    rest::apply_status(operation, MANAGER, ready(server)).await
}

fn ready(server: &Server) -> Doc {
    doc!({
        "apiVersion": "networking.k8s.io/v1", "kind": "ServiceCIDR",
        "metadata": { "name": NAME },
        "status": { "conditions": [{
            "type": "Ready", "status": "True",
            "message": "Kubernetes default Service CIDR is ready",
            "lastTransitionTime": (server.inner().env.now().to_string())
        }] }
    })
}
