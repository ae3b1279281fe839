//! Requests to a server in this process.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method};
use windlass_core::{Doc, doc};

use crate::rig::{Answer, Call, Rig, headers, on_fresh_server};
use crate::{Outcome, parts, work};

const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";
/// Objects that lists are read in pages of.
const OBJECTS: usize = 7;
/// The content of objects that only the administrator may see.
const CONTENT: &str = "buried-treasure";
/// Bytes of an answer besides those of objects.
const ANSWER_BYTES_MAX: usize = 8 << 20;

/// Objects in two namespaces.
pub(super) fn prepare(rig: &Rig) {
    let other = doc!({ "metadata": { "name": "other" } });
    assert_eq!(
        rig.write(Method::POST, "/api/v1/namespaces", &other).code,
        201
    );
    for number in 0..OBJECTS {
        let name = format!("c{number}");
        let map = doc!({ "metadata": { "name": (name.as_str()), "labels": { "app": "web" } },
            "data": { "a": "b" } });
        assert_eq!(rig.write(Method::POST, CONFIG_MAPS, &map).code, 201);
        let secret = doc!({ "metadata": { "name": (format!("hidden{number}")) },
            "data": { "content": CONTENT } });
        let target = "/api/v1/namespaces/other/configmaps";
        assert_eq!(rig.write(Method::POST, target, &secret).code, 201);
    }
    let pod = doc!({ "metadata": { "name": "p" },
        "spec": { "containers": [{ "name": "c", "image": "nginx" }] } });
    let target = "/api/v1/namespaces/default/pods";
    assert_eq!(rig.write(Method::POST, target, &pod).code, 201);
}

/// Panics if the answer is no answer of a sound server: a failure that is not meant, an error that
/// is no `Status`, or one that says another code than it has.
fn checked(answer: &Answer, is_strategic: bool) {
    let doc = answer.doc();
    answer.check(is_strategic);
    assert!(
        answer.body.len() <= ANSWER_BYTES_MAX,
        "{} bytes",
        answer.body.len()
    );
    if answer.code >= 400 && *doc.at("/kind") == "Status" {
        assert_eq!(
            doc.at("/code").as_i64(),
            Some(i64::from(answer.code)),
            "{doc}"
        );
        assert_eq!(doc.str_at("/status"), "Failure");
    }
}

fn first_line(data: &[u8]) -> Option<(Method, String)> {
    let text = std::str::from_utf8(data).ok()?;
    let (method, target) = text.split_once(' ')?;
    Some((
        Method::from_bytes(method.as_bytes()).ok()?,
        target.to_owned(),
    ))
}

/// A method and a target, such as `GET /api/v1/pods?limit=1`: no failure, and the same answer to
/// the same read.
pub fn request_target(data: &[u8]) -> Outcome {
    let Some((method, target)) = first_line(data) else {
        return Outcome::Refused;
    };
    served(data.len(), |rig| {
        let call = Call {
            method: method.clone(),
            target,
            ..Call::default()
        };
        let answer = rig.send(call.clone())?;
        checked(&answer, false);
        // Metrics and ages change from one request to the next.
        let is_stable = !call.target.contains("metrics") && !call.target.contains("etrics");
        if method == Method::GET && is_stable {
            let again = rig.send(call)?;
            assert_eq!(again.code, answer.code, "the same read");
            assert_eq!(again.body, answer.body, "the same read");
        }
        Some(answer)
    })
}

/// A method and a target, and lines of headers: no failure, and a stranger sees no object.
pub fn request_headers(data: &[u8]) -> Outcome {
    let [line, lines] = parts::<2>(data);
    let Some((method, target)) = first_line(line) else {
        return Outcome::Refused;
    };
    served(data.len(), |rig| {
        let call = Call {
            method,
            target,
            headers: headers(lines),
            ..Call::default()
        };
        let answer = rig.send(call.clone())?;
        let is_strategic = is_strategic(&call.headers);
        checked(&answer, is_strategic);
        let has_id = answer.headers.contains_key("audit-id");
        assert!(has_id, "an answer without an audit id");
        let stranger = rig.send(Call {
            is_anonymous: true,
            ..call
        })?;
        checked(&stranger, is_strategic);
        let text = String::from_utf8_lossy(&stranger.body);
        assert!(!text.contains(CONTENT), "a stranger sees an object");
        Some(answer)
    })
}

fn is_strategic(headers: &HeaderMap) -> bool {
    let kind = headers.get("content-type").map(HeaderValue::as_bytes);
    kind.is_some_and(|kind| kind.starts_with(b"application/strategic-merge-patch+json"))
}

/// A method and a target, lines of headers, and a body: no failure; what was created is there as
/// the answer said; and writing again what is there changes nothing.
pub fn request_body(data: &[u8]) -> Outcome {
    let [line, lines, body] = parts::<3>(data);
    let Some((method, target)) = first_line(line) else {
        return Outcome::Refused;
    };
    served(data.len(), |rig| {
        let headers = headers(lines);
        let is_strategic = is_strategic(&headers);
        let body = Bytes::copy_from_slice(body);
        let call = Call {
            method: method.clone(),
            target: target.clone(),
            headers,
            body,
            ..Call::default()
        };
        let answer = rig.send(call)?;
        checked(&answer, is_strategic);
        let created = answer.doc();
        let name = created.str_at("/metadata/name");
        let is_object = matches!(created.str_at("/kind"), "ConfigMap" | "Pod" | "Namespace");
        if method == Method::POST && answer.code == 201 && is_object && !target.contains('?') {
            written_again(
                rig,
                &format!("{}/{name}", target.trim_end_matches('/')),
                &created,
            );
        }
        Some(answer)
    })
}

fn written_again(rig: &Rig, target: &str, created: &Doc) {
    let found = rig.get(target);
    assert_eq!(&found.doc(), created, "what was created is there");
    let again = rig.write(Method::PUT, target, created);
    assert_eq!(again.code, 200, "{}", again.doc());
    let revision = |doc: &Doc| doc.str_at("/metadata/resourceVersion").to_owned();
    assert_eq!(
        revision(&again.doc()),
        revision(created),
        "writing the same changes nothing"
    );
}

/// A number of objects per page and the JSON of a continue token: a page of objects of the
/// namespace in their order, or a refusal with 400 or 410. The pages that follow end.
pub fn continue_token(data: &[u8]) -> Outcome {
    let [limit, token] = parts::<2>(data);
    let limit = limit.first().map_or(1, |byte| usize::from(byte % 8));
    served(data.len(), |rig| {
        let mut token = URL_SAFE_NO_PAD.encode(token);
        let mut answer = None;
        // One page more than there are objects.
        for _ in 0..=OBJECTS + 1 {
            let target = format!("{CONFIG_MAPS}?limit={limit}&continue={token}");
            let page = rig.send(Call {
                target,
                ..Call::default()
            })?;
            let doc = page.doc();
            let is_meant = matches!(page.code, 200 | 400 | 410)
                || doc
                    .str_at("/message")
                    .contains("Too large resource version");
            assert!(is_meant, "{}: {doc}", page.code);
            let items = doc.at("/items").items();
            let names: Vec<&str> = items
                .iter()
                .map(|item| item.str_at("/metadata/name"))
                .collect();
            assert!(names.is_sorted(), "{names:?}");
            assert!(
                names.iter().all(|name| !name.starts_with("hidden")),
                "{names:?}"
            );
            assert!(limit == 0 || names.len() <= limit, "{names:?}");
            doc.str_at("/metadata/continue").clone_into(&mut token);
            answer.get_or_insert(page);
            if token.is_empty() {
                return answer;
            }
        }
        panic!("the pages do not end");
    })
}

/// Runs a task on a prepared server and takes its answer for the outcome.
pub(super) fn served(bytes: usize, task: impl FnOnce(&Rig) -> Option<Answer>) -> Outcome {
    on_fresh_server(prepare, |rig| {
        work::bounded(work::SERVED, bytes, || {
            task(rig).map_or(Outcome::Refused, |answer| Outcome::of(answer.is_ok()))
        })
    })
}
