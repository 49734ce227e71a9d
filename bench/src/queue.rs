//! The durable queue: calls that are queued and run, next to a plain `FOR UPDATE SKIP LOCKED` loop on the same
//! PostgreSQL in the same run.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use haft_testkit::postgres;
use serde_json::Value;
use sqlx::postgres::PgPoolOptions;
use sqlx::{Connection as _, PgConnection};

use crate::load::{self, Connection};
use crate::process::Server;

/// How many calls, or jobs, a measurement takes.
const CALLS: usize = 5000;
/// How many clients put calls into the queue, and how many workers take them.
const CLIENTS: usize = 16;

/// Measures the queue on SQLite, on PostgreSQL with one and two nodes, and the plain loop.
pub async fn run() -> Result<()> {
    println!(
        "\n## The queue: {CALLS} calls of a no-op function, {CLIENTS} clients, {CLIENTS} workers a node\n"
    );
    println!("| queue | queued per second | done per second |");
    println!("| --- | ---: | ---: |");
    let home = tempfile::tempdir()?;
    let server = crate::tables::with_noop(home.path(), "disk").await?;
    print("haft, SQLite", measure(&[&server]).await?);
    drop(server);
    for nodes in [1, 2] {
        let database = postgres::database()?;
        print(
            &format!("plain loop, PostgreSQL, {nodes} × {CLIENTS} workers"),
            plain(&database.url, nodes).await?,
        );
        let database = postgres::database()?;
        let homes = (0..nodes).map(|_| tempfile::tempdir()).collect::<Result<Vec<_>, _>>()?;
        let mut servers = Vec::new();
        for home in &homes {
            let home = home.path().to_str().context("the path is not valid UTF-8")?;
            servers.push(Server::start(&["serve-haft-on", home, &database.url])?);
        }
        let first = servers.first().context("no node")?;
        crate::tables::create_noop(first).await?;
        // The other node learns of the tool.
        tokio::time::sleep(Duration::from_secs(2)).await;
        let servers: Vec<&Server> = servers.iter().collect();
        print(&format!("haft, PostgreSQL, {nodes} nodes"), measure(&servers).await?);
    }
    Ok(())
}

/// How fast calls were queued, and how fast they were done, from the first request on.
struct Rates {
    queued: f64,
    done: f64,
}

impl Rates {
    fn new(queued: Duration, done: Duration) -> Self {
        Self { queued: CALLS as f64 / queued.as_secs_f64(), done: CALLS as f64 / done.as_secs_f64() }
    }
}

fn print(name: &str, rates: Rates) {
    println!("| {name} | {:.0} | {:.0} |", rates.queued, rates.done);
}

/// Queues calls at all nodes and waits until the last one has ended.
async fn measure(servers: &[&Server]) -> Result<Rates> {
    let started = Instant::now();
    let mut clients = tokio::task::JoinSet::new();
    for client in 0..CLIENTS {
        let server = servers.get(client % servers.len()).context("no node")?;
        let (addr, token) = (server.addr, server.token.clone());
        clients.spawn(async move {
            let mut connection = Connection::open(addr).await?;
            let body = r#"{"args":{"city":"Paris","days":3}}"#;
            let request = load::request("POST", "/api/tools/noop/invoke?async=true", &token, body);
            for _ in 0..CALLS / CLIENTS {
                connection.exchange(&request).await?;
            }
            Ok::<_, anyhow::Error>(())
        });
    }
    while let Some(client) = clients.join_next().await {
        client??;
    }
    let queued = started.elapsed();
    let server = servers.first().context("no node")?;
    while waiting(server.addr, &server.token).await? > 0 {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    Ok(Rates::new(queued, started.elapsed()))
}

/// Returns how many calls have not ended.
async fn waiting(addr: SocketAddr, token: &str) -> Result<u64> {
    let mut connection = Connection::open(addr).await?;
    let mut count = 0;
    for status in ["pending", "running"] {
        let path = format!("/api/calls?status={status}&page_size=1");
        let response = connection.exchange(&load::request("GET", &path, token, "")).await?;
        let response: Value = serde_json::from_str(&response)?;
        count += response["data"]["total"].as_u64().context("no total")?;
    }
    Ok(count)
}

/// Inserts jobs and takes them by `FOR UPDATE SKIP LOCKED`, one a transaction, with nothing else around it.
async fn plain(url: &str, nodes: usize) -> Result<Rates> {
    let mut connection = PgConnection::connect(url).await?;
    let table = "CREATE TABLE jobs (id BIGSERIAL PRIMARY KEY, payload TEXT NOT NULL, result TEXT)";
    sqlx::query(table).execute(&mut connection).await?;
    sqlx::query("CREATE INDEX jobs_open ON jobs (id) WHERE result IS NULL").execute(&mut connection).await?;
    let pool =
        PgPoolOptions::new().max_connections(u32::try_from(CLIENTS * (nodes + 1))?).connect(url).await?;
    let started = Instant::now();
    let mut clients = tokio::task::JoinSet::new();
    for _ in 0..CLIENTS {
        let pool = pool.clone();
        clients.spawn(async move {
            for _ in 0..CALLS / CLIENTS {
                let insert = sqlx::query("INSERT INTO jobs (payload) VALUES ($1)");
                insert.bind(r#"{"city":"Paris","days":3}"#).execute(&pool).await?;
            }
            Ok::<_, anyhow::Error>(())
        });
    }
    let (finished, stop) = tokio::sync::watch::channel(false);
    let mut workers = tokio::task::JoinSet::new();
    for _ in 0..CLIENTS * nodes {
        workers.spawn(work(pool.clone(), stop.clone()));
    }
    while let Some(client) = clients.join_next().await {
        client??;
    }
    let queued = started.elapsed();
    finished.send_replace(true);
    while let Some(worker) = workers.join_next().await {
        worker??;
    }
    Ok(Rates::new(queued, started.elapsed()))
}

/// Takes jobs until none is left after the last was inserted.
async fn work(pool: sqlx::PgPool, inserted: tokio::sync::watch::Receiver<bool>) -> Result<()> {
    loop {
        let all_inserted = *inserted.borrow();
        let mut transaction = pool.begin().await?;
        let take =
            "SELECT id, payload FROM jobs WHERE result IS NULL ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED";
        let job: Option<(i64, String)> = sqlx::query_as(take).fetch_optional(&mut *transaction).await?;
        let Some((id, payload)) = job else {
            if all_inserted {
                return Ok(());
            }
            drop(transaction);
            tokio::time::sleep(Duration::from_millis(1)).await;
            continue;
        };
        sqlx::query("UPDATE jobs SET result = $1 WHERE id = $2")
            .bind(payload)
            .bind(id)
            .execute(&mut *transaction)
            .await?;
        transaction.commit().await?;
    }
}
