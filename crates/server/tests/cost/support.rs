//! A server in memory and the CPU time of requests to it.

use bytes::Bytes;
use http::{Method, Request, StatusCode};
use http_body_util::{BodyExt, Full};
use rustix::time::{ClockId, clock_gettime};
use tokio::runtime::Runtime;
use tower::ServiceExt;
use windlass_core::Env;
use windlass_server::{Server, ServerOptions, User};

use crate::{RATIO_LIMIT, shapes};

/// The length of hostile bodies: nearly as much as the server reads.
pub(crate) const BODY_BYTES: usize = (3 << 20) - 4096;

/// The length of bodies of the many kinds and lists there are: enough to tell what is quadratic.
pub(crate) const LIST_BYTES: usize = 512 << 10;

pub(crate) const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";
pub(crate) const PODS: &str = "/api/v1/namespaces/default/pods";
pub(crate) const GADGETS: &str = "/apis/example.com/v1/namespaces/default/gadgets";
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// A request whose cost is measured.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    /// An object that is there before: the path of its list, and the object.
    pub(crate) before: Option<(&'static str, String)>,
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) media_type: &'static str,
    pub(crate) body: Vec<u8>,
}

impl Case {
    /// A creation.
    pub(crate) fn create(name: &'static str, path: &str, body: impl Into<Vec<u8>>) -> Self {
        Self {
            name,
            before: None,
            method: Method::POST,
            path: path.to_owned(),
            media_type: "application/json",
            body: body.into(),
        }
    }

    pub(crate) fn of_type(self, media_type: &'static str) -> Self {
        Self { media_type, ..self }
    }
}

/// The cost of a body as a multiple of a plain one, and the answer.
pub(crate) struct Ratio {
    pub(crate) value: f64,
    pub(crate) code: StatusCode,
}

/// Measures requests.
pub(crate) struct Meter {
    runtime: Runtime,
    /// CPU seconds for each byte of a plain object that is created.
    plain: f64,
}

impl Meter {
    pub(crate) fn new() -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = { runtime }.enable_all().build().unwrap();
        let mut meter = Self {
            runtime,
            plain: 0.0,
        };
        let body = shapes::plain_config_map();
        let cost = |meter: &Self| {
            let case = Case::create("plain", CONFIG_MAPS, body.clone());
            let (code, seconds) = meter.measure(&case);
            assert_eq!(code, StatusCode::CREATED);
            seconds
        };
        let fastest = (0..3).map(|_| cost(&meter)).fold(f64::INFINITY, f64::min);
        meter.plain = fastest / body.len() as f64;
        meter
    }

    /// The cost of a body. One that looks too expensive is measured once more: the machine may be
    /// busy.
    pub(crate) fn ratio(&self, case: &Case) -> Ratio {
        let plain = self.plain * case.body.len().max(64 << 10) as f64;
        let (code, mut seconds) = self.measure(case);
        if seconds > RATIO_LIMIT * plain {
            seconds = seconds.min(self.measure(case).1);
        }
        Ratio {
            value: seconds / plain,
            code,
        }
    }

    /// The answer to a request to a fresh server, and the CPU seconds until it is there.
    fn measure(&self, case: &Case) -> (StatusCode, f64) {
        self.runtime.block_on(async {
            let options = ServerOptions::memory(Env::seeded(1));
            let server = Server::open(options).await.unwrap();
            prepare(&server, case).await;
            let body = Bytes::from(case.body.clone());
            let begun = cpu();
            let path = &case.path;
            let code = send(&server, &case.method, path, case.media_type, body).await;
            (code, cpu() - begun)
        })
    }
}

/// Makes what a case needs.
async fn prepare(server: &Server, case: &Case) {
    let json = "application/json";
    if case.path.starts_with(GADGETS) {
        let definition = Bytes::from(shapes::definition().to_json());
        let code = send(server, &Method::POST, DEFINITIONS, json, definition).await;
        assert_eq!(code, StatusCode::CREATED);
    }
    if let Some((path, object)) = &case.before {
        let object = Bytes::from(object.clone());
        let code = send(server, &Method::POST, path, json, object).await;
        assert_eq!(code, StatusCode::CREATED, "{}", case.name);
    }
}

async fn send(
    server: &Server,
    method: &Method,
    path: &str,
    media_type: &str,
    body: Bytes,
) -> StatusCode {
    let request = Request::builder().method(method).uri(path);
    let request = request.header("content-type", media_type);
    let mut request = request.body(Full::new(body)).unwrap();
    request.extensions_mut().insert(User::admin());
    let response = server.clone().oneshot(request).await.unwrap();
    let code = response.status();
    // The answer is part of the work.
    response.into_body().collect().await.unwrap();
    code
}

/// The CPU seconds that this process has used.
fn cpu() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}
