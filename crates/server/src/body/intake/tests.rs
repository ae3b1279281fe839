use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use http::Request;
use http_body::Frame;
use windlass_core::Env;

use super::*;
use crate::open::ServerOptions;
use crate::server::Server;

const REVIEWS: &str = "/apis/authentication.k8s.io/v1/selfsubjectreviews";

/// A body that sends its pieces, one each period, and then nothing and no end.
struct Endless {
    pieces: Vec<Bytes>,
    period: Pin<Box<tokio::time::Sleep>>,
}

fn endless(pieces: Vec<Bytes>) -> Endless {
    let period = Box::pin(tokio::time::sleep(Duration::ZERO));
    Endless { pieces, period }
}

impl HttpBody for Endless {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        std::task::ready!(self.period.as_mut().poll(cx));
        let Some(piece) = self.pieces.pop() else {
            return Poll::Pending;
        };
        let next = Instant::now() + Duration::from_secs(3);
        self.period.as_mut().reset(next);
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }
}

async fn server() -> Server {
    let options = ServerOptions::memory(Env::seeded(1));
    Server::open(options).await.unwrap()
}

fn request<B>(method: Method, path: &str, user: &str, body: B) -> Request<B> {
    let user = User::new(user, &[]);
    Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", "application/json")
        .extension(user)
        .body(body)
        .unwrap()
}

async fn code<B>(server: &Server, request: Request<B>) -> u16
where
    B: HttpBody<Data = Bytes, Error = Infallible> + Send + 'static,
{
    server.handle(request).await.status().as_u16()
}

#[tokio::test(start_paused = true)]
async fn requests_with_unfinished_bodies_do_not_disturb_a_reader() {
    let server = server().await;
    let mut slow = tokio::task::JoinSet::new();
    for _ in 0..2000 {
        let server = server.clone();
        let body = endless(vec![Bytes::from_static(b"{")]);
        let request = request(Method::POST, REVIEWS, "mallory", body);
        slow.spawn(async move { code(&server, request).await });
    }
    tokio::task::yield_now().await;
    assert_eq!(server.in_flight(), (0, 0), "none of them takes a seat");
    let before = Instant::now();
    let get = request(Method::GET, "/version", "jane", String::new());
    assert_eq!(code(&server, get).await, 200);
    let review = request(Method::POST, REVIEWS, "jane", "{}".to_owned());
    assert_eq!(code(&server, review).await, 201);
    assert_eq!(before.elapsed(), Duration::ZERO);
    while let Some(code) = slow.join_next().await {
        assert_eq!(code.unwrap(), 504);
    }
    assert_eq!(before.elapsed(), BODY_GRACE);
    assert_eq!(server.inner().bodies.stats().held, 0);
    assert_eq!(server.inner().bodies.stats().late, 2000);
}

#[tokio::test(start_paused = true)]
async fn the_body_of_a_get_is_not_waited_for() {
    let server = server().await;
    let before = Instant::now();
    for method in [Method::GET, Method::HEAD] {
        let get = request(method, "/version", "mallory", endless(Vec::new()));
        assert_eq!(code(&server, get).await, 200);
    }
    assert_eq!(before.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn a_body_that_trickles_is_refused() {
    let server = server().await;
    let before = Instant::now();
    let piece = Bytes::from_static(b" ");
    let slow = request(Method::POST, REVIEWS, "mallory", endless(vec![piece; 100]));
    assert_eq!(code(&server, slow).await, 504);
    assert_eq!(before.elapsed(), BODY_GRACE);
    // Enough bytes earn more time.
    let piece = Bytes::from(vec![b' '; 4 * BODY_BYTES_PER_SECOND as usize]);
    let steady = request(Method::POST, REVIEWS, "mallory", endless(vec![piece; 8]));
    let before = Instant::now();
    assert_eq!(code(&server, steady).await, 504);
    assert_eq!(before.elapsed(), BODY_GRACE + Duration::from_secs(32));
}

#[tokio::test(start_paused = true)]
async fn unfinished_bodies_hold_no_more_memory_than_their_user_may() {
    let server = server().await;
    let piece = Bytes::from(vec![b' '; BODY_BYTES_LIMIT]);
    let mut slow = tokio::task::JoinSet::new();
    for _ in 0..40 {
        let server = server.clone();
        let body = endless(vec![piece.clone()]);
        let request = request(Method::POST, REVIEWS, "mallory", body);
        slow.spawn(async move { code(&server, request).await });
    }
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    let stats = server.inner().bodies.stats();
    assert!(stats.held <= USER_BYTES_LIMIT, "{stats:?}");
    assert_eq!(stats.refused, 40 - 21, "{stats:?}");
    let review = request(Method::POST, REVIEWS, "jane", "{}".to_owned());
    assert_eq!(code(&server, review).await, 201);
    let mut codes: Vec<u16> = slow.join_all().await;
    codes.sort_unstable();
    assert_eq!((codes[0], codes[39]), (429, 504));
    assert!(server.inner().bodies.held.lock().users.is_empty());
}

#[tokio::test(start_paused = true)]
async fn strangers_leave_memory_for_administrators() {
    let intake = BodyIntake::default();
    let memory = |user: &str, is_master: bool| BodyMemory {
        intake: &intake,
        user: user.to_owned(),
        is_master,
        bytes: 0,
    };
    let users = ["a", "b", "c", "d", "e"];
    let mut all: Vec<BodyMemory<'_>> = users.map(|user| memory(user, false)).into();
    let grown = all
        .iter_mut()
        .map(|memory| memory.grow(USER_BYTES_LIMIT).is_ok());
    assert_eq!(grown.collect::<Vec<_>>(), [true, true, true, false, false]);
    assert!(memory("admin", true).grow(USER_BYTES_LIMIT).is_ok());
    drop(all);
    assert_eq!(intake.stats().held, 0);
}

#[tokio::test]
async fn options_of_a_delete_have_a_small_limit() {
    let server = server().await;
    let path = "/api/v1/namespaces/default/configmaps/a";
    let body = " ".repeat(OPTIONS_BYTES_LIMIT + 1);
    let mut delete = request(Method::DELETE, path, "jane", body);
    delete.extensions_mut().insert(User::admin());
    assert_eq!(code(&server, delete).await, 413);
}
