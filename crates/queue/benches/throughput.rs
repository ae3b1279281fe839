//! Adds and hand-outs per second under contention.
use std::{sync::{Arc, atomic::{AtomicUsize, Ordering::Relaxed}}, time::Instant};
use windlass_queue::WorkQueue;

fn keys(n: usize) -> Vec<Arc<str>> {
    (0..n).map(|i| format!("default/pod-{i:06}").into()).collect()
}
fn cpu() -> f64 {
    let s = std::fs::read_to_string("/proc/self/stat").unwrap();
    let f: Vec<&str> = s[s.rfind(')').unwrap() + 2..].split(' ').collect();
    (f[11].parse::<f64>().unwrap() + f[12].parse::<f64>().unwrap()) / 100.0
}

fn run(rt: &tokio::runtime::Runtime, closed: bool, producers: usize, workers: usize, n: usize, adds: usize) {
    let queue = WorkQueue::new();
    let keys = keys(n);
    let done = Arc::new(AtomicUsize::new(0));
    let (t0, c0) = (Instant::now(), cpu());
    let ws: Vec<_> = (0..workers).map(|_| { let (q, done) = (queue.clone(), done.clone()); rt.spawn(async move {
        while let Some(item) = q.get().await { drop(item); done.fetch_add(1, Relaxed); }
    })}).collect();
    let keys = Arc::new(keys);
    let ps: Vec<_> = (0..producers).map(|p| { let (q, done, keys) = (queue.clone(), done.clone(), keys.clone()); rt.spawn(async move {
            let (mine, count) = (n / producers, adds / producers);
            let mut credit = 0;
            for i in 0..count {
                while closed && i >= credit {
                    credit = (done.load(Relaxed) + n) / producers;
                    if i >= credit { tokio::task::yield_now().await; }
                }
                q.add(keys[p * mine + i % mine].clone());
                tokio::task::consume_budget().await;
            }
    })}).collect();
    rt.block_on(async { for w in ps { w.await.unwrap(); } });
    queue.shut_down();
    rt.block_on(async { for w in ws { w.await.unwrap(); } });
    let (d, c, got) = (t0.elapsed().as_secs_f64(), cpu() - c0, done.load(Relaxed));
    println!("rust {} {producers}/{workers} keys={n}: Madds/s {:.2} Mhandouts/s {:.2} sum/s {:.2} | cpu ns per op {:.0} per handout {:.0} cpus {:.2}", if closed {"closed"} else {"open  "},
        adds as f64 / d / 1e6, got as f64 / d / 1e6, (adds + got) as f64 / d / 1e6, c * 1e9 / (adds + got) as f64, c * 1e9 / got as f64, c / d);
}

fn fill(rt: &tokio::runtime::Runtime, n: usize) {
    let q = WorkQueue::new();
    let keys = keys(n);
    let rounds = 500;
    rt.block_on(async {
        let (t0, c0) = (Instant::now(), cpu());
        for _ in 0..rounds {
            for k in &keys { q.add(k.clone()); }
            for _ in &keys { drop(q.get().await); }
        }
        println!("rust single fill/drain keys={n}: Mhandouts/s {:.2} cpu ns {:.0}", (rounds * n) as f64 / t0.elapsed().as_secs_f64() / 1e6, (cpu() - c0) * 1e9 / (rounds * n) as f64);
    });
}

fn main() {
    let rt = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    for closed in [true, false] {
        run(&rt, closed, 1, 1, 10_000, 1_000_000);
        run(&rt, closed, 4, 16, 100, 500_000);
        run(&rt, closed, 4, 16, 10_000, 1_000_000);
    }
}
