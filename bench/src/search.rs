//! Tool search through REST, next to SQLite's FTS5 over the same texts in the same run.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use haft::Tools;
use serde_json::Value;
use sqlx::{Connection as _, SqliteConnection};

use crate::load::{self, Connection, Figures};
use crate::process::Server;

const VERBS: [&str; 24] = [
    "create",
    "delete",
    "update",
    "list",
    "send",
    "find",
    "convert",
    "upload",
    "download",
    "merge",
    "schedule",
    "cancel",
    "approve",
    "translate",
    "summarize",
    "export",
    "import",
    "archive",
    "restore",
    "compare",
    "validate",
    "publish",
    "share",
    "count",
];
const NOUNS: [&str; 40] = [
    "invoice",
    "customer",
    "message",
    "channel",
    "calendar event",
    "ticket",
    "repository",
    "branch",
    "issue",
    "pull request",
    "payment",
    "refund",
    "order",
    "shipment",
    "warehouse",
    "employee",
    "contract",
    "report",
    "dashboard",
    "metric",
    "alert",
    "server",
    "database",
    "backup",
    "image",
    "video",
    "playlist",
    "recipe",
    "flight",
    "hotel booking",
    "weather forecast",
    "stock price",
    "exchange rate",
    "news article",
    "email draft",
    "contact",
    "meeting room",
    "survey",
    "certificate",
    "webhook",
];
const SERVICES: [&str; 26] = [
    "billing",
    "support",
    "sales",
    "marketing",
    "logistics",
    "travel",
    "payroll",
    "recruiting",
    "analytics",
    "monitoring",
    "storage",
    "identity",
    "education",
    "health",
    "finance",
    "legal",
    "gaming",
    "music",
    "maps",
    "translation",
    "news",
    "energy",
    "farming",
    "sports",
    "insurance",
    "housing",
];
const DETAILS: [&str; 16] = [
    "Requires the identifier that an earlier call returned.",
    "The result is sorted by date, newest first.",
    "Fails if the account has no permission for it.",
    "Supports pages of at most one hundred entries.",
    "Notifies all subscribers when it has finished.",
    "Accepts dates in any time zone.",
    "Returns the changed fields only.",
    "Runs in the background; poll its status.",
    "Can be undone within thirty days.",
    "Ignores entries that are archived already.",
    "Uses the default currency of the workspace.",
    "Large files are split into parts.",
    "Repeated calls with the same key have no further effect.",
    "Personal data is masked in the response.",
    "Only administrators see hidden entries.",
    "Values above the quota are rejected.",
];

const KEYWORDS: [&str; 8] =
    ["invoice", "merge", "weather", "refund", "translate report", "stock price", "wether", "backup"];
const SENTENCES: [&str; 8] = [
    "send a message to the support channel",
    "how much is a share worth today",
    "book a room for the meeting tomorrow at noon",
    "give the customer the money back for the last order",
    "what will the weather be like in the mountains",
    "merge the pull request and then delete the branch",
    "export all invoices of the last month for the tax office",
    "who works here and since when, sorted by date",
];

/// How often each query is sent.
const ROUNDS: usize = 50;

/// Measures catalogs of these sizes.
pub async fn run(sizes: &[usize]) -> Result<()> {
    println!("\n## Tool search, one client\n");
    println!("| tools | search | queries | p50 µs | p99 µs |");
    println!("| ---: | --- | --- | ---: | ---: |");
    let mut builds = Vec::new();
    for count in sizes {
        let home = tempfile::tempdir()?;
        write_tools(home.path(), *count)?;
        builds.push(build(*count)?);
        let mut full_text = full_text(home.path(), *count).await?;
        let server = start(home.path(), *count).await?;
        for (name, queries) in [("keywords", KEYWORDS), ("sentences", SENTENCES)] {
            let figures = rest(&server, &queries).await?;
            print(*count, "haft, REST", name, &figures);
            let figures = sqlite(&mut full_text, &queries).await?;
            print(*count, "SQLite FTS5, in process", name, &figures);
        }
    }
    println!("\nThe index in a program (`Tools::search`):\n");
    println!("| tools | build s | build ms per 10,000 | memory MB | memory MB per 10,000 |");
    println!("| ---: | ---: | ---: | ---: | ---: |");
    for (count, seconds, megabytes) in builds {
        let share = 10_000.0 / count as f64;
        println!(
            "| {count} | {seconds:.2} | {:.0} | {megabytes:.0} | {:.0} |",
            1000.0 * seconds * share,
            megabytes * share
        );
    }
    Ok(())
}

fn print(count: usize, search: &str, queries: &str, figures: &Figures) {
    println!(
        "| {count} | {search} | {queries} | {} | {} |",
        figures.p50.as_micros(),
        figures.p99.as_micros()
    );
}

/// The texts of one tool: name, description, tag.
fn texts(index: usize) -> (String, String, &'static str) {
    let (verb, noun) = (VERBS[index % VERBS.len()], NOUNS[index / VERBS.len() % NOUNS.len()]);
    let service = SERVICES[index / (VERBS.len() * NOUNS.len()) % SERVICES.len()];
    let name = format!("{service}_{verb}_{}_{index}", noun.replace(' ', "_"));
    let details = [DETAILS[index * 7 % DETAILS.len()], DETAILS[(index / 5 + 3) % DETAILS.len()]];
    (name, format!("{verb} the {noun} of {service}. {} {}", details[0], details[1]), service)
}

fn write_tools(home: &Path, count: usize) -> Result<()> {
    for index in 0..count {
        let folder = home.join(format!("skills/bundle-{}", index / 1000));
        std::fs::create_dir_all(&folder)?;
        let (name, description, tag) = texts(index);
        let text = format!(
            "name: {name}\ndescription: {description}\ntags: [{tag}]\nparams:\n  - name: city\n    type: string\n    \
             description: The city of the office\n    required: true\n  - name: days\n    type: integer\n\
             implementation:\n  type: builtin\n  function: noop\n"
        );
        std::fs::write(folder.join(format!("{name}.yaml")), text)?;
    }
    Ok(())
}

/// Returns the number of tools and the time and the memory that the first search of a program takes.
fn build(count: usize) -> Result<(usize, f64, f64)> {
    let tools = Tools::new();
    let load = |index: usize| -> Result<()> {
        let (name, description, tag) = texts(index);
        let text = format!(
            "name: {name}\ndescription: {description}\ntags: [{tag}]\nparams: [{{name: city, type: string}}]\n\
             implementation: {{type: builtin, function: noop}}\n"
        );
        tools.load_text(haft::FileForm::Yaml, &text).map_err(|error| anyhow::anyhow!("{error}"))?;
        Ok(())
    };
    (0..count).try_for_each(load)?;
    let before = resident_megabytes()?;
    let started = Instant::now();
    let _ = tools.search("weather", 1);
    let seconds = started.elapsed().as_secs_f64();
    Ok((count, seconds, resident_megabytes()? - before))
}

fn resident_megabytes() -> Result<f64> {
    let text = std::fs::read_to_string("/proc/self/status")?;
    let line = text.lines().find(|line| line.starts_with("VmRSS:")).context("no VmRSS")?;
    Ok(line.split_whitespace().nth(1).context("no number")?.parse::<f64>()? / 1024.0)
}

/// Starts a server and waits until it finds every tool.
async fn start(home: &Path, count: usize) -> Result<Server> {
    let home = home.to_str().context("the path is not valid UTF-8")?;
    // The second start reads no files.
    drop(Server::start(&["serve-haft", home, "disk"])?);
    let server = Server::start(&["serve-haft", home, "disk"])?;
    let started = Instant::now();
    let mut connection = Connection::open(server.addr).await?;
    for index in [0, count / 2, count - 1] {
        let (name, ..) = texts(index);
        let request = search_request(&server, &name);
        loop {
            let response: Value = serde_json::from_str(&connection.exchange(&request).await?)?;
            if response["data"]["tools"][0]["name"] == name.as_str() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
    eprintln!(
        "{count} tools: start {} ms, indexed {} ms later, {:.0} MB",
        server.ready_after.as_millis(),
        started.elapsed().as_millis(),
        server.resident_megabytes()?
    );
    Ok(server)
}

fn search_request(server: &Server, query: &str) -> Vec<u8> {
    let path = format!("/api/tools/search?page_size=10&q={}", query.replace(' ', "+"));
    load::request("GET", &path, &server.token, "")
}

async fn rest(server: &Server, queries: &[&str]) -> Result<Figures> {
    let mut connection = Connection::open(server.addr).await?;
    let requests: Vec<_> = queries.iter().map(|query| search_request(server, query)).collect();
    for request in &requests {
        connection.exchange(request).await?;
    }
    let (started, mut times) = (Instant::now(), Vec::new());
    for _ in 0..ROUNDS {
        for request in &requests {
            let sent = Instant::now();
            connection.exchange(request).await?;
            times.push(sent.elapsed());
        }
    }
    Ok(Figures::new(times, started.elapsed()))
}

/// Writes the same texts into an FTS5 table.
async fn full_text(home: &Path, count: usize) -> Result<SqliteConnection> {
    let path = home.join("fts5.db");
    let path = path.to_str().context("the path is not valid UTF-8")?;
    let mut connection = SqliteConnection::connect(&format!("sqlite://{path}?mode=rwc")).await?;
    let table =
        "CREATE VIRTUAL TABLE tools USING fts5(name, description, tag, tokenize = 'porter unicode61')";
    sqlx::query(table).execute(&mut connection).await?;
    let mut transaction = connection.begin().await?;
    for index in 0..count {
        let (name, description, tag) = texts(index);
        sqlx::query("INSERT INTO tools VALUES (?, ?, ?)")
            .bind(name)
            .bind(description)
            .bind(tag)
            .execute(&mut *transaction)
            .await?;
    }
    transaction.commit().await?;
    Ok(connection)
}

async fn sqlite(connection: &mut SqliteConnection, queries: &[&str]) -> Result<Figures> {
    // Any word may match, as with haft.
    let queries: Vec<String> = queries
        .iter()
        .map(|query| query.replace(',', " ").split_whitespace().collect::<Vec<_>>().join(" OR "))
        .collect();
    let select =
        "SELECT name, description FROM tools WHERE tools MATCH ? ORDER BY bm25(tools, 2, 1, 0.5) LIMIT 10";
    let (started, mut times) = (Instant::now(), Vec::new());
    for _ in 0..ROUNDS {
        for query in &queries {
            let sent = Instant::now();
            let _: Vec<(String, String)> =
                sqlx::query_as(select).bind(query).fetch_all(&mut *connection).await?;
            times.push(sent.elapsed());
        }
    }
    Ok(Figures::new(times, started.elapsed()))
}
