// SPDX-License-Identifier: MIT OR Apache-2.0
//! server REQUESTS: an HTTP server on tokio and hyper, and its clients, in one process.
use hyper::service::{make_service_fn, service_fn};
use hyper::{Body, Client, Request, Response, Server};
use std::convert::Infallible;
use std::net::SocketAddr;

#[inline(never)]
fn digest(text: &str) -> u64 {
    (0..200u64).fold(0, |h, round| {
        text.bytes().fold(h ^ round, |h, b| (h ^ u64::from(b)).wrapping_mul(0x100_0000_01b3))
    })
}

async fn answer(request: Request<Body>) -> Result<Response<Body>, Infallible> {
    let body = hyper::body::to_bytes(request.into_body()).await.unwrap_or_default();
    let sum = digest(&String::from_utf8_lossy(&body));
    tokio::task::yield_now().await;
    Ok(Response::new(Body::from(format!("{sum:x}"))))
}

async fn client(url: hyper::Uri, requests: u32) -> u32 {
    let client = Client::new();
    let mut good = 0;
    for i in 0..requests {
        let body = Body::from(format!("request number {i} with a body of some length"));
        let request = Request::post(url.clone()).body(body).expect("request");
        if let Ok(response) = client.request(request).await {
            if hyper::body::to_bytes(response.into_body()).await.is_ok() {
                good += 1;
            }
        }
    }
    good
}

#[tokio::main(worker_threads = 3)]
async fn main() {
    let requests = std::env::args().nth(1).and_then(|s| s.parse().ok()).unwrap_or(2000);
    let make = make_service_fn(|_| async { Ok::<_, Infallible>(service_fn(answer)) });
    let server = Server::bind(&SocketAddr::from(([127, 0, 0, 1], 0))).serve(make);
    let url: hyper::Uri = format!("http://{}/", server.local_addr()).parse().expect("url");
    tokio::spawn(server);
    let clients: Vec<_> =
        (0..4).map(|_| tokio::spawn(client(url.clone(), requests / 4))).collect();
    let mut good = 0;
    for c in clients {
        good += c.await.unwrap_or(0);
    }
    println!("{good} answers");
}
