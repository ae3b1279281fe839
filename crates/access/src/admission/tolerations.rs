//! Default toleration seconds: the time for which a pod tolerates a node that does not answer.

use windlass_core::{Doc, doc};

use super::Request;
use super::plugin::Admit;
use windlass_rules::status::Status;

use windlass_rules::edit::put;

const SECONDS: i64 = 300;
const TAINTS: [&str; 2] = [
    "node.kubernetes.io/not-ready",
    "node.kubernetes.io/unreachable",
];

/// Gives pods the seconds that they stay on a node that does not answer.
pub(super) struct DefaultTolerationSeconds;

impl Admit for DefaultTolerationSeconds {
    fn create(&self, _: &Request<'_>, pod: Doc) -> Result<Doc, Status> {
        Ok(admit(pod))
    }

    fn update(&self, _: &Request<'_>, pod: Doc, _: &Doc) -> Result<Doc, Status> {
        Ok(admit(pod))
    }
}

fn admit(pod: Doc) -> Doc {
    let mut tolerations = pod.at("/spec/tolerations").items().to_vec();
    let before = tolerations.len();
    for key in TAINTS {
        let covers = |toleration: &Doc| {
            matches!(toleration.str_at("/key"), known if known == key || known.is_empty())
                && matches!(toleration.str_at("/effect"), "NoExecute" | "")
        };
        if !tolerations[..before].iter().any(covers) {
            tolerations.push(doc!({
                "key": key, "operator": "Exists", "effect": "NoExecute",
                "tolerationSeconds": SECONDS
            }));
        }
    }
    if tolerations.len() == before {
        return pod;
    }
    put(pod, "/spec/tolerations", tolerations)
}
