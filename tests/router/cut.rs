//! A wire to a server that loses answers.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// A wire that loses answers to requests for jobs, as often as it is told.
pub struct Cut {
    pub url: String,
    left: Arc<AtomicUsize>,
    lost: Arc<AtomicUsize>,
}

impl Cut {
    pub async fn to(address: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let cut = Self {
            url: format!("http://{}", listener.local_addr().unwrap()),
            left: Arc::default(),
            lost: Arc::default(),
        };
        let (left, lost, address) = (Arc::clone(&cut.left), Arc::clone(&cut.lost), address.to_owned());
        tokio::spawn(async move {
            while let Ok((near, _)) = listener.accept().await {
                tokio::spawn(join(near, address.clone(), Arc::clone(&left), Arc::clone(&lost)));
            }
        });
        cut
    }

    /// From now on it loses so many answers.
    pub fn lose(&self, answers: usize) {
        self.left.store(answers, Ordering::SeqCst);
    }

    /// Answers that it lost.
    pub fn lost(&self) -> usize {
        self.lost.load(Ordering::SeqCst)
    }
}

async fn join(mut near: TcpStream, address: String, left: Arc<AtomicUsize>, lost: Arc<AtomicUsize>) {
    let Ok(mut far) = TcpStream::connect(address).await else {
        return;
    };
    let (mut there, mut back) = (vec![0; 64 << 10], vec![0; 64 << 10]);
    let mut is_for_a_job = false;
    loop {
        tokio::select! {
            read = near.read(&mut there) => {
                let Ok(n @ 1..) = read else { return };
                if there.starts_with(b"POST ") {
                    is_for_a_job = true;
                } else if there.starts_with(b"GET ") {
                    is_for_a_job = false;
                }
                if far.write_all(&there[..n]).await.is_err() {
                    return;
                }
            }
            read = far.read(&mut back) => {
                let Ok(n @ 1..) = read else { return };
                let is_lost = is_for_a_job
                    && left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok();
                if is_lost {
                    lost.fetch_add(1, Ordering::SeqCst);
                    return;
                }
                if near.write_all(&back[..n]).await.is_err() {
                    return;
                }
            }
        }
    }
}
