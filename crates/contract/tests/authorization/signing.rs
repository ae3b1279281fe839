//! Requests for certificates, and those who decide about them.

use super::matrix::{Row, Table, row};

const REQUESTS: &str = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
const CLIENT: &str = "kubernetes.io/kube-apiserver-client";
/// A request of `CN=joe, O=system:masters`, whose key nobody has.
const MASTERS: &str = concat!(
    "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0KTUlIaU1JR0pBZ0VBTUNjeEREQUtCZ05WQkFNTUEycH",
    "ZaVEVYTUJVR0ExVUVDZ3dPYzNsemRHVnRPbTFoYzNSbApjbk13V1RBVEJnY3Foa2pPUFFJQkJnZ3Foa2pPUFFNQkJ3",
    "TkNBQVNENTY0Q054ZDVoYmoxRE9HWU9sVWFPb3RoCm84Q2M5bDJrTjU0YUp5VnpPWXdwaE5SNEdvKzZNY3ptVkJjS1",
    "JlZ2xHaGNQN25PZmRkUENKQWVSaDJSdm9BQXcKQ2dZSUtvWkl6ajBFQXdJRFNBQXdSUUlnTXFFeTh1VXFoOEZzZ0Vv",
    "YmVLbzdwSWg2TERVS0x0c3owOGxycWVvYQp3TlFDSVFEQVdZU1JrTVBxSEM5a1RvaGtkM1JKbGNkUmM2M1NPRC9wL0",
    "FJOHBweWVJZz09Ci0tLS0tRU5EIENFUlRJRklDQVRFIFJFUVVFU1QtLS0tLQo=",
);
/// A request of `CN=joe, O=dev`, whose key nobody has.
pub(crate) const DEV: &str = concat!(
    "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0KTUlIV01INENBUUF3SERFTU1Bb0dBMVVFQXd3RGFtOW",
    "xNUXd3Q2dZRFZRUUtEQU5rWlhZd1dUQVRCZ2NxaGtqTwpQUUlCQmdncWhrak9QUU1CQndOQ0FBUXFHL2ozek9kOFpD",
    "aXY4TUNkdkpLVDhnNDlDUDA0d1FnR3B2cHFVWGswCnBITEU4S2w2QWFOaGd2Rmw5RE16ZURIY3pWQ3hUWnNHcUs0TU",
    "duaEo3c1Q3b0FBd0NnWUlLb1pJemowRUF3SUQKU0FBd1JRSWdUeTFUNkxzZ0R1bEJwMU9VU3IzQ3NVWXJwd1Y5dXJl",
    "VEZXZ0x6R1ltOUc0Q0lRQ0NrOUh6aEVqWgpyeG5uOU00YlRLUW45SUttZ1pVd0RML1FXaVF6OW10NUR3PT0KLS0tLS",
    "1FTkQgQ0VSVElGSUNBVEUgUkVRVUVTVC0tLS0tCg==",
);
const APPROVED: &str = r#"{"status":{"conditions":[{"type":"Approved","status":"True"}]}}"#;
const FAILED: &str = r#"{"status":{"conditions":[{"type":"Failed","status":"True"}]}}"#;

fn request(name: &str, signer: &str, request: &str) -> String {
    format!(
        r#"{{"metadata":{{"name":"{name}"}},"spec":{{"request":"{request}",
            "signerName":"{signer}","usages":["client auth"]}}}}"#
    )
}

fn rules(signers: &str) -> String {
    format!(
        r#"[{{"verbs":["*"],"apiGroups":["certificates.k8s.io"],"resources":[
            "certificatesigningrequests","certificatesigningrequests/approval",
            "certificatesigningrequests/status"]}}{signers}]"#
    )
}

fn signer(verb: &str, name: &str) -> String {
    rules(&format!(
        r#",{{"verbs":["{verb}"],"apiGroups":["certificates.k8s.io"],"resources":["signers"],
            "resourceNames":["{name}"]}}"#
    ))
}

pub(crate) fn table() -> Table {
    Table::default()
        .cluster_user("writer", &rules(""))
        .cluster_user("approver", &signer("approve", "acme.io/a"))
        .cluster_user("signer", &signer("sign", "acme.io/a"))
        .cluster_user("domain-approver", &signer("approve", "acme.io/*"))
        .cluster_user("domain-signer", &signer("sign", "acme.io/*"))
        .cluster_user("other-approver", &signer("approve", "acme.io/b"))
        .cluster_user("star", &signer("*", "*"))
        .cluster_user(
            "every-signer",
            &rules(
                r#",{"verbs":["approve","sign"],"apiGroups":["certificates.k8s.io"],
                "resources":["signers"]}"#,
            ),
        )
        .cluster_user(
            "signers-only",
            r#"[{"verbs":["*"],"apiGroups":["certificates.k8s.io"],
            "resources":["signers"]}]"#,
        )
        .with(REQUESTS, &request("{ns}-a", "acme.io/a", DEV))
        .rows(subjects())
        .rows(decisions())
}

fn create(name: &str, who: &str, signer: &str, pem: &str, code: u16) -> Row {
    let path = format!("POST {REQUESTS}?dryRun=All");
    row(name, who, &path, code).body(request("{ns}-trial", signer, pem))
}

fn subjects() -> Vec<Row> {
    vec![
        create("ordinary subject", "writer", CLIENT, DEV, 201),
        create(
            "administrators as the subject",
            "writer",
            CLIENT,
            MASTERS,
            403,
        )
        .says(
            "certificatesigningrequests.certificates.k8s.io \"{ns}-trial\" is forbidden: \
                   use of kubernetes.io/kube-apiserver-client signer with system:masters group is \
                   not allowed",
        ),
        create(
            "administrators as the subject, by an administrator",
            "admin",
            CLIENT,
            MASTERS,
            403,
        ),
        create(
            "administrators as the subject for another signer",
            "writer",
            "acme.io/a",
            MASTERS,
            201,
        ),
        create(
            "administrators as the subject, with bad usages",
            "writer",
            CLIENT,
            MASTERS,
            422,
        )
        .body(request("{ns}-trial", CLIENT, MASTERS).replace("client auth", "nonsense")),
        create("what is no request", "writer", CLIENT, "bm9uc2Vuc2U=", 422),
        create("request without a right", "stranger", CLIENT, DEV, 403)
            .says("cannot create resource \"certificatesigningrequests\""),
        create(
            "request by the right for signers",
            "signers-only",
            CLIENT,
            DEV,
            403,
        ),
    ]
}

fn patch(name: &str, who: &str, part: &str, body: &str, code: u16) -> Row {
    let path = format!("PATCH {REQUESTS}/{{ns}}-a/{part}?dryRun=All");
    row(name, who, &path, code).body(body)
}

fn decisions() -> Vec<Row> {
    vec![
        patch(
            "approval without the signer",
            "writer",
            "approval",
            APPROVED,
            403,
        )
        .says(
            "certificatesigningrequests.certificates.k8s.io \"{ns}-a\" is forbidden: user \
                   not permitted to approve requests with signerName \"acme.io/a\"",
        ),
        patch(
            "approval of nothing without the signer",
            "writer",
            "approval",
            "{}",
            403,
        ),
        patch(
            "approval for the signer",
            "approver",
            "approval",
            APPROVED,
            200,
        ),
        patch(
            "approval for the domain",
            "domain-approver",
            "approval",
            APPROVED,
            200,
        ),
        patch(
            "approval for another signer",
            "other-approver",
            "approval",
            APPROVED,
            403,
        ),
        patch(
            "approval for every signer",
            "every-signer",
            "approval",
            APPROVED,
            200,
        ),
        patch(
            "approval by one who may sign",
            "signer",
            "approval",
            APPROVED,
            403,
        ),
        patch(
            "approval for the signer called star",
            "star",
            "approval",
            APPROVED,
            403,
        ),
        patch(
            "approval by an administrator",
            "admin",
            "approval",
            APPROVED,
            200,
        ),
        patch(
            "approval without the request",
            "signers-only",
            "approval",
            APPROVED,
            403,
        )
        .says("cannot patch resource \"certificatesigningrequests/approval\""),
        patch(
            "approval with a bad condition",
            "writer",
            "approval",
            r#"{"status":{"conditions":[{"type":"Approved","status":"False"}]}}"#,
            422,
        ),
        patch(
            "failure without the signer",
            "writer",
            "status",
            FAILED,
            403,
        )
        .says("user not permitted to sign requests with signerName \"acme.io/a\""),
        patch("failure for the signer", "signer", "status", FAILED, 200),
        patch(
            "failure for the domain",
            "domain-signer",
            "status",
            FAILED,
            200,
        ),
        patch(
            "failure by one who may approve",
            "approver",
            "status",
            FAILED,
            403,
        ),
        patch(
            "failure by an administrator",
            "admin",
            "status",
            FAILED,
            200,
        ),
        patch(
            "status of nothing without the signer",
            "writer",
            "status",
            "{}",
            200,
        ),
        patch(
            "label by the status without the signer",
            "writer",
            "status",
            r#"{"metadata":{"labels":{"x":"y"}}}"#,
            200,
        ),
        row(
            "absent request",
            "approver",
            &format!("PATCH {REQUESTS}/{{ns}}-z/approval"),
            404,
        )
        .body(APPROVED),
        row(
            "status by the main path",
            "writer",
            &format!("PATCH {REQUESTS}/{{ns}}-a?dryRun=All"),
            200,
        )
        .body(APPROVED),
    ]
}
