//! The attacks: what each sends, on how many connections.

use std::sync::Arc;

use anyhow::bail;

use super::frames::Requests;
use super::hold::{Hold, Opening};
use super::prepare::own;
use super::repeat::Script;
use super::reset::Reset;
use super::{
    Abuser, COLLECTION_SELECTOR, CONFIGMAPS, PODS, REVIEWS, ROLES, VICTIM_CONFIGMAPS, bodies,
};
use crate::server::wire::Target;

const MERGE: &str = "application/merge-patch+json";
const JSON_PATCH: &str = "application/json-patch+json";
const STRATEGIC: &str = "application/strategic-merge-patch+json";
const APPLY: &str = "application/apply-patch+yaml";
const JSON: &str = "application/json";

/// Clients that each send one costly request after the other.
const COSTLY_CLIENTS: usize = 4;
/// Clients that all write to one object, and the bytes they write.
const WRITERS: usize = 16;
const WRITTEN_BYTES: usize = 400_000;
/// Bytes of a large object.
const LARGE_BYTES: usize = 900_000;
/// Clients of a flood of small requests, and of lists.
const FLOOD_CLIENTS: usize = 64;
const LIST_CLIENTS: usize = 16;
/// Connections that do nothing, of each of four sorts.
const IDLE_CONNECTIONS: usize = 500;
/// Connections that never send a body, and streams of each of two further ones.
const HALF_CONNECTIONS: usize = 384;
const HALF_STREAMS: usize = 1_000;
/// Connections that do not read a large answer.
const UNREAD_CONNECTIONS: usize = 64;
/// Watches on connections of their own, and watches on each of four further connections.
const WATCH_CONNECTIONS: usize = 400;
const WATCH_STREAMS: usize = 400;
/// Bytes of the object that unread watches are told about.
const WATCHED_BYTES: usize = 50_000;
/// Connections on which requests are cancelled.
const RESET_CONNECTIONS: usize = 4;

/// Everything that an abuser does at the same time.
#[derive(Default)]
pub(super) struct Plan {
    /// Requests that are sent and read, one after the other, on a connection each.
    pub(super) scripts: Vec<Script>,
    /// Connections that are opened and kept.
    pub(super) holds: Vec<Hold>,
    /// Connections on which requests are opened and cancelled.
    pub(super) resets: Vec<Reset>,
}

impl Plan {
    /// The attack of this name.
    pub(super) fn named(name: &str, abuser: Abuser, target: &Target) -> anyhow::Result<Self> {
        let planner = Planner { abuser, target };
        match name {
            "merge-keys" => planner.merge_keys(),
            "json-inserts" => planner.json_inserts(),
            "role-product" => planner.role_product(),
            "list-maps" => planner.list_maps(),
            "odd-bodies" => planner.odd_bodies(),
            "one-object" => planner.one_object(),
            "half-bodies" => planner.half_bodies(),
            "idle-connections" => Ok(planner.idle_connections()),
            "unread-answers" => planner.unread_answers(),
            "unread-watches" => planner.unread_watches(),
            "small-requests" => planner.small_requests(),
            "list-flood" => planner.list_flood(),
            "rapid-reset" => Ok(planner.rapid_reset()),
            "large-updates" => planner.large_updates(),
            _ => bail!("there is no attack {name:?}"),
        }
    }

    fn of_scripts(scripts: Vec<Script>) -> Self {
        Self {
            scripts,
            ..Self::default()
        }
    }
}

struct Planner<'a> {
    abuser: Abuser,
    target: &'a Target,
}

impl Planner<'_> {
    fn request(&self, head: [&str; 3], body: &[u8]) -> anyhow::Result<Arc<[u8]>> {
        let mut out = Vec::new();
        self.target.write_request(&mut out, head, body)?;
        Ok(out.into())
    }

    fn get(&self, path: &str) -> anyhow::Result<Arc<[u8]>> {
        self.request(["GET", path, JSON], b"")
    }

    fn merge_keys(&self) -> anyhow::Result<Plan> {
        let patches = bodies::merge_keys();
        let script = |client| {
            let path = format!("{CONFIGMAPS}/{}", own(client));
            let of = |body: &Vec<u8>| self.request(["PATCH", &path, MERGE], body);
            patches.iter().map(of).collect::<anyhow::Result<Script>>()
        };
        scripts(COSTLY_CLIENTS, script)
    }

    fn json_inserts(&self) -> anyhow::Result<Plan> {
        let patch = bodies::json_inserts();
        scripts(COSTLY_CLIENTS, |client| {
            let path = format!("{CONFIGMAPS}/{}", own(COSTLY_CLIENTS + client));
            Ok(vec![self.request(["PATCH", &path, JSON_PATCH], &patch)?])
        })
    }

    fn role_product(&self) -> anyhow::Result<Plan> {
        let request = self.request(["POST", ROLES, JSON], &bodies::role())?;
        scripts(COSTLY_CLIENTS, |_| Ok(vec![Arc::clone(&request)]))
    }

    /// Every other client applies, the others patch.
    fn list_maps(&self) -> anyhow::Result<Plan> {
        let path = format!("{PODS}/many");
        let applied = format!("{path}?fieldManager=abuser&force=true");
        let strategic = self.request(["PATCH", &path, STRATEGIC], &bodies::strategic_patch())?;
        let apply = self.request(["PATCH", &applied, APPLY], &bodies::applied_pod())?;
        scripts(COSTLY_CLIENTS, |client| {
            let request = [&strategic, &apply][client % 2];
            Ok(vec![Arc::clone(request)])
        })
    }

    /// Each client begins with another body.
    fn odd_bodies(&self) -> anyhow::Result<Plan> {
        let path = format!("{CONFIGMAPS}/odd?fieldManager=abuser");
        let mut requests = Vec::new();
        for (content, body) in bodies::odd() {
            requests.push(match content {
                APPLY => self.request(["PATCH", &path, content], &body)?,
                _ => self.request(["POST", CONFIGMAPS, content], &body)?,
            });
            if content == JSON {
                requests.push(self.request(["POST", REVIEWS, content], &body)?);
            }
        }
        scripts(COSTLY_CLIENTS, |client| {
            let mut script = requests.clone();
            script.rotate_left(client * requests.len() / COSTLY_CLIENTS);
            Ok(script)
        })
    }

    fn one_object(&self) -> anyhow::Result<Plan> {
        let path = format!("{CONFIGMAPS}/{}", own(2 * COSTLY_CLIENTS));
        let request = |letter| {
            self.request(
                ["PATCH", &path, MERGE],
                &bodies::value(letter, WRITTEN_BYTES),
            )
        };
        let requests = [request('a')?, request('b')?];
        scripts(WRITERS, |client| {
            let mut script = requests.to_vec();
            script.rotate_left(client % 2);
            Ok(script)
        })
    }

    fn large_updates(&self) -> anyhow::Result<Plan> {
        scripts(COSTLY_CLIENTS, |client| {
            let name = own(3 * COSTLY_CLIENTS + client);
            let path = format!("{CONFIGMAPS}/{name}");
            let request = |letter| {
                let body = bodies::configmap(&name, letter, LARGE_BYTES);
                self.request(["PUT", &path, JSON], &body)
            };
            Ok(vec![request('a')?, request('b')?])
        })
    }

    /// Requests whose bodies stop after a few bytes, or never begin.
    fn half_bodies(&self) -> anyhow::Result<Plan> {
        // A stranger may read this, and nothing else that has to wait for a body.
        let readable = match self.abuser {
            Abuser::User => CONFIGMAPS,
            Abuser::Stranger => "/version",
        };
        let whole = bodies::value('x', 1_000);
        let mut holds = Vec::new();
        for method in ["POST", "GET", "PATCH", "DELETE"] {
            let path = match method {
                "GET" => readable.to_owned(),
                "POST" => CONFIGMAPS.to_owned(),
                _ => format!("{CONFIGMAPS}/{}", own(0)),
            };
            let request = self.request([method, &path, MERGE], &whole)?;
            let half: Arc<[u8]> = request[..request.len() - 990].into();
            for _ in 0..HALF_CONNECTIONS / 4 {
                holds.push(Hold::new(Opening::Tls, Arc::clone(&half)));
            }
        }
        for (method, path) in [("GET", readable), ("POST", CONFIGMAPS)] {
            let mut requests = Requests::new(self.target, method, path, Some(1_000));
            for _ in 0..HALF_STREAMS {
                requests.open();
            }
            holds.push(Hold::new(Opening::Http2, requests.take().into()));
        }
        Ok(Plan {
            holds,
            ..Plan::default()
        })
    }

    fn idle_connections(&self) -> Plan {
        // A TLS record that announces a ClientHello of 508 bytes, and ends after its random bytes.
        let mut hello = vec![0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3];
        hello.extend_from_slice(&[7; 32]);
        let sorts: [(Opening, &[u8]); 4] = [
            (Opening::Tcp, b""),
            (Opening::Tcp, &hello),
            (Opening::Tls, b""),
            (Opening::Http2, b"PRI * HTTP/2"),
        ];
        let mut holds = Vec::new();
        for _ in 0..IDLE_CONNECTIONS {
            for (opening, bytes) in sorts {
                holds.push(Hold::new(opening, bytes.into()));
            }
        }
        Plan {
            holds,
            ..Plan::default()
        }
    }

    /// A stranger gets no lists, and so asks for small answers without end.
    fn unread_answers(&self) -> anyhow::Result<Plan> {
        let path = match self.abuser {
            Abuser::User => format!("{CONFIGMAPS}?{COLLECTION_SELECTOR}"),
            Abuser::Stranger => "/version".to_owned(),
        };
        let request = self.get(&path)?;
        let hold = Hold::unread(Opening::Tls, request);
        Ok(Plan {
            holds: vec![hold; UNREAD_CONNECTIONS],
            ..Plan::default()
        })
    }

    /// Half of the watches are of one large object that changes; the other half begin with the
    /// collection.
    fn unread_watches(&self) -> anyhow::Result<Plan> {
        let name = own(2 * COSTLY_CLIENTS + 1);
        let paths = [
            format!("{CONFIGMAPS}?watch=1&fieldSelector=metadata.name%3D{name}"),
            format!("{CONFIGMAPS}?watch=1&{COLLECTION_SELECTOR}"),
        ];
        let mut holds = Vec::new();
        for path in &paths {
            let request = self.get(path)?;
            for _ in 0..WATCH_CONNECTIONS / 2 {
                holds.push(Hold::unread_once(Opening::Tls, Arc::clone(&request)));
            }
            for _ in 0..2 {
                let mut requests = Requests::new(self.target, "GET", path, None);
                for _ in 0..WATCH_STREAMS {
                    requests.open();
                }
                // Nothing extends the window of a connection, which is as good as not reading.
                holds.push(Hold::new(Opening::Http2, requests.take().into()));
            }
        }
        let path = format!("{CONFIGMAPS}/{name}");
        let patch = |letter| {
            self.request(
                ["PATCH", &path, MERGE],
                &bodies::value(letter, WATCHED_BYTES),
            )
        };
        Ok(Plan {
            scripts: vec![vec![patch('a')?, patch('b')?]],
            holds,
            ..Plan::default()
        })
    }

    fn small_requests(&self) -> anyhow::Result<Plan> {
        let script = match self.abuser {
            Abuser::User => vec![
                self.get(&format!("{CONFIGMAPS}/{}", own(COSTLY_CLIENTS - 1)))?,
                self.request(["POST", REVIEWS, JSON], &bodies::review())?,
            ],
            Abuser::Stranger => vec![self.get("/version")?, self.get(VICTIM_CONFIGMAPS)?],
        };
        scripts(FLOOD_CLIENTS, |_| Ok(script.clone()))
    }

    fn list_flood(&self) -> anyhow::Result<Plan> {
        let path = format!("{CONFIGMAPS}?{COLLECTION_SELECTOR}");
        let script = vec![
            self.get(&path)?,
            self.get(&format!("{path}&resourceVersion=0"))?,
        ];
        scripts(LIST_CLIENTS, |_| Ok(script.clone()))
    }

    fn rapid_reset(&self) -> Plan {
        let path = format!("{CONFIGMAPS}?{COLLECTION_SELECTOR}");
        Plan {
            resets: vec![Reset { path }; RESET_CONNECTIONS],
            ..Plan::default()
        }
    }
}

fn scripts(
    clients: usize,
    script: impl Fn(usize) -> anyhow::Result<Script>,
) -> anyhow::Result<Plan> {
    let scripts = (0..clients).map(script).collect::<anyhow::Result<_>>()?;
    Ok(Plan::of_scripts(scripts))
}
