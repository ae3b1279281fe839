//! The AdmissionReview that a webhook answers with.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use windlass_core::Doc;
use windlass_rules::status::Status;

use crate::callout::CallAnswer;

/// The codes between which a `Status` can have one.
const CODE_MIN: i64 = 400;
const CODE_MAX: i64 = 999;

/// A checked answer.
#[derive(Debug)]
pub(super) struct Response {
    pub(super) is_allowed: bool,
    /// The text of a JSON patch; empty for none.
    pub(super) patch: Vec<u8>,
    pub(super) patch_type: String,
    pub(super) result: Doc,
    pub(super) warnings: Vec<String>,
    pub(super) annotations: Vec<(String, String)>,
}

/// The document in an answer, or the words of upstream's client for why there is none.
pub(super) fn read(answer: &CallAnswer) -> Result<Doc, (String, u16)> {
    let doc = Doc::parse(&answer.body);
    if !(200..300).contains(&answer.code) {
        if let Ok(doc) = &doc
            && doc.str_at("/kind") == "Status"
            && doc.str_at("/status") == "Failure"
        {
            return Err((doc.str_at("/message").to_owned(), answer.code));
        }
        return Err((failure(answer), answer.code));
    }
    if answer.body.is_empty() {
        let code = answer.code;
        let why = format!("0-length response with status code: {code} and content type: ");
        return Err((why, 500));
    }
    let doc = doc.map_err(|error| {
        let why = format!("couldn't get version/kind; json parse error: {error}");
        (why, 500)
    })?;
    match doc.as_object() {
        Some(_) => Ok(doc),
        None => Err((
            "couldn't get version/kind; json parse error: json: cannot unmarshal into \
                      Go value of type struct"
                .to_owned(),
            500,
        )),
    }
}

/// Upstream's words for an answer that is no success.
fn failure(answer: &CallAnswer) -> String {
    // Upstream shows only text.
    let body = match answer.is_text {
        true => String::from_utf8_lossy(&answer.body),
        false => "unknown".into(),
    };
    match answer.code {
        400 => "the server rejected our request for an unknown reason".to_owned(),
        401 => "the server has asked for the client to provide credentials".to_owned(),
        403 => body.trim().to_owned(),
        404 => "the server could not find the requested resource".to_owned(),
        405 => "the server does not allow this method on the requested resource".to_owned(),
        409 => "the server reported a conflict".to_owned(),
        422 => "the server rejected our request due to an error in our request".to_owned(),
        429 => "the server has received too many requests and has asked us to try again later"
            .to_owned(),
        503 => "the server is currently unable to handle the request".to_owned(),
        504 => "the server was unable to return a response in the time allotted, but may still be \
                processing the request"
            .to_owned(),
        500.. => {
            let body = windlass_core::quote(body.trim());
            format!("an error on the server ({body}) has prevented the request from succeeding")
        }
        code => format!(
            "the server responded with the status code {code} but did not return more information"
        ),
    }
}

/// Checks an answer as upstream does, in upstream's order.
pub(super) fn verify(
    review: &Doc,
    version: &str,
    uid: &str,
    is_mutating: bool,
) -> Result<Response, String> {
    let response = review.at("/response");
    if response.is_null() {
        return Err("webhook response was absent".to_owned());
    }
    let patch = BASE64.decode(response.str_at("/patch"));
    let patch = patch.map_err(|error| format!("illegal base64 data: {error}"))?;
    let mut patch_type = response.at("/patchType").as_str().map(str::to_owned);
    if version == "v1" {
        check_identity(review, uid)?;
        check_patch(&patch, patch_type.as_deref(), is_mutating)?;
    } else {
        // The type was never looked at in v1beta1.
        patch_type = (!patch.is_empty()).then(|| "JSONPatch".to_owned());
    }
    let texts = |list: &Doc| {
        list.items()
            .iter()
            .filter_map(Doc::as_str)
            .map(str::to_owned)
            .collect()
    };
    let annotations = response.at("/auditAnnotations").as_object().cloned();
    let annotations = annotations.iter().flat_map(|map| map.iter());
    Ok(Response {
        is_allowed: *response.at("/allowed") == true,
        patch: if is_mutating { patch } else { Vec::new() },
        patch_type: patch_type.unwrap_or_default(),
        result: response.at("/status").clone(),
        warnings: texts(response.at("/warnings")),
        annotations: annotations
            .map(|(key, value)| {
                (
                    key.to_string(),
                    value.as_str().unwrap_or_default().to_owned(),
                )
            })
            .collect(),
    })
}

fn check_identity(review: &Doc, uid: &str) -> Result<(), String> {
    let found = review.str_at("/response/uid");
    if found != uid {
        return Err(format!("expected response.uid={uid:?}, got {found:?}"));
    }
    let (api_version, kind) = (review.str_at("/apiVersion"), review.str_at("/kind"));
    if (api_version, kind) == ("admission.k8s.io/v1", "AdmissionReview") {
        return Ok(());
    }
    let found = match api_version.contains('/') {
        true => api_version.to_owned(),
        false => format!("/{api_version}"),
    };
    Err(format!(
        "expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got {found}, \
         Kind={kind}"
    ))
}

fn check_patch(patch: &[u8], patch_type: Option<&str>, is_mutating: bool) -> Result<(), String> {
    let why = match (is_mutating, patch.is_empty(), patch_type) {
        (true, false, None) => "webhook returned response.patch but not response.patchType",
        (true, true, Some(_)) => "webhook returned response.patchType but not response.patch",
        (true, false, Some("")) => "webhook returned invalid response.patchType of \"\"",
        (false, false, _) => "validating webhook may not return response.patch",
        (false, true, Some(_)) => "validating webhook may not return response.patchType",
        _ => return Ok(()),
    };
    Err(why.to_owned())
}

/// The refusal of a webhook as its client sees it.
pub(super) fn denied(webhook: &str, result: &Doc) -> Status {
    let code = result.at("/code").as_i64().unwrap_or(0);
    let code = code.clamp(CODE_MIN, CODE_MAX);
    let denied = format!("admission webhook {webhook:?} denied the request");
    let (message, reason) = (result.str_at("/message"), result.str_at("/reason"));
    let message = match (message, reason) {
        ("", "") => format!("{denied} without explanation"),
        ("", reason) => format!("{denied}: {reason}"),
        (message, _) => format!("{denied}: {message}"),
    };
    let code = u16::try_from(code).unwrap_or(400);
    Status::given(code, message, reason, result.at("/details"))
}

#[cfg(test)]
mod tests {
    use windlass_core::doc;

    use super::*;

    #[test]
    fn a_denial_is_explained_by_its_message_or_its_reason_or_not_at_all() {
        for (result, code, message) in [
            (
                doc!({ "message": "no" }),
                400,
                "admission webhook \"a\" denied the request: no",
            ),
            (
                doc!({ "reason": "Why", "code": 418 }),
                418,
                "admission webhook \"a\" denied the request: Why",
            ),
            (
                Doc::NULL,
                400,
                "admission webhook \"a\" denied the request without explanation",
            ),
            (
                doc!({ "code": 200 }),
                400,
                "admission webhook \"a\" denied the request without explanation",
            ),
            (
                doc!({ "code": 70000 }),
                999,
                "admission webhook \"a\" denied the request without explanation",
            ),
        ] {
            let status = denied("a", &result);
            assert_eq!((status.code(), status.message()), (code, message));
        }
    }
}
