//! Protobuf bodies of creations.

use windlass_atlas::ProtobufEncoder;
use windlass_core::Doc;

use crate::shapes::filled_to;
use crate::support::{BODY_BYTES, CONFIG_MAPS, Case, PODS};

fn make(name: &'static str, list: &str, body: Vec<u8>) -> Case {
    Case::create(name, list, body).of_type("application/vnd.kubernetes.protobuf")
}

fn encoded(json: &str) -> Vec<u8> {
    let mut body = Vec::new();
    assert!(ProtobufEncoder::new().write(&Doc::parse(json.as_bytes()).unwrap(), &mut body));
    body
}

/// A field of a message whose value is bytes.
fn field(number: u8, value: &[u8]) -> Vec<u8> {
    let mut out = vec![number << 3 | 2];
    let mut length = value.len();
    while length > 127 {
        out.push(u8::try_from(length & 127).unwrap() | 128);
        length >>= 7;
    }
    out.push(u8::try_from(length).unwrap());
    out.extend_from_slice(value);
    out
}

/// A body of a kind of the core group.
fn body(kind: &str, object: &[u8]) -> Vec<u8> {
    let named = [field(1, b"v1"), field(2, kind.as_bytes())].concat();
    [b"k8s\0".to_vec(), field(1, &named), field(2, object)].concat()
}

/// A config map of as many fields as fit.
fn config_map(part: &[u8]) -> Vec<u8> {
    let name = field(1, &field(1, b"a"));
    let count = (BODY_BYTES - 100) / part.len();
    body("ConfigMap", &[name, part.repeat(count)].concat())
}

pub(crate) fn cases() -> Vec<Case> {
    let entry = field(2, &[field(1, b"k"), field(2, b"v")].concat());
    let unknown = field(15, b"");
    let metadata = field(1, &field(1, b"a"));
    let label = field(1, &field(11, &[field(1, b"k"), field(2, b"v")].concat()));
    let owner = field(1, &field(13, &field(1, b"P")));
    let nested = (0..2000).fold(Vec::new(), |inner, _| field(1, &inner));
    let json_pod = |open: &str, part: &dyn Fn(usize) -> String, close: &str| {
        let open = format!(
            r#"{{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"a"}},"spec":{{{open}"#
        );
        encoded(&filled_to(1 << 20, &open, part, &format!("{close}}}}}")))
    };
    let container = |n: usize| format!(r#"{{"name":"c{n}","image":"i"}}"#);
    let data = |part: &dyn Fn(usize) -> String| {
        encoded(&filled_to(
            3 << 20,
            r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"#,
            part,
            "}}",
        ))
    };
    let spec = field(2, &field(2, &field(1, b"c")));
    let count = BODY_BYTES / spec.len();
    vec![
        make(
            "many keys",
            CONFIG_MAPS,
            data(&|n| format!(r#""key-{n}":"v""#)),
        ),
        make("one key many times", CONFIG_MAPS, config_map(&entry)),
        make("empty entries", CONFIG_MAPS, config_map(&field(2, b""))),
        make("unknown fields", CONFIG_MAPS, config_map(&unknown)),
        make("metadata many times", CONFIG_MAPS, config_map(&metadata)),
        make("a label many times", CONFIG_MAPS, config_map(&label)),
        make(
            "metadata with an owner each",
            CONFIG_MAPS,
            config_map(&owner),
        ),
        make("deep", CONFIG_MAPS, config_map(&field(1, &nested))),
        make(
            "huge string",
            CONFIG_MAPS,
            config_map(&field(
                2,
                &[field(1, b"k"), field(2, &vec![b'x'; BODY_BYTES / 2])].concat(),
            )),
        ),
        make("cut off", CONFIG_MAPS, {
            let mut all = config_map(&entry);
            all.pop();
            all
        }),
        make(
            "containers",
            PODS,
            json_pod(r#""containers":["#, &container, "]"),
        ),
        make(
            "env",
            PODS,
            json_pod(
                r#""containers":[{"name":"c","image":"i","env":["#,
                &|n| format!(r#"{{"name":"E{n}"}}"#),
                "]}]",
            ),
        ),
        make(
            "spec with a container each",
            PODS,
            body(
                "Pod",
                &[field(1, &field(1, b"a")), spec.repeat(count)].concat(),
            ),
        ),
        make(
            "empty containers",
            PODS,
            body(
                "Pod",
                &[
                    field(1, &field(1, b"a")),
                    field(2, &field(2, b"").repeat(BODY_BYTES / 2 - 50)),
                ]
                .concat(),
            ),
        ),
        make(
            "resources",
            PODS,
            json_pod(
                r#""containers":[{"name":"c","image":"i","resources":{"requests":{"#,
                &|n| format!(r#""e.com/{n}":"1""#),
                "}}}]",
            ),
        ),
    ]
}
