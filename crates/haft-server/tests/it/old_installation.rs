//! Opening what a version before people has stored: tokens, chats, calls and approvals keep working, with their owners.

use std::path::{Path, PathBuf};

use haft_core::actor::LOCAL_OWNER;
use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::{Server, function_tool};
use crate::postgres::{database, on};
use crate::tenants::with;
use crate::waiting::{decide, finished};

/// The last script of the schema before people.
const LAST_SCRIPT: &str = "0036_token_parent.sql";

/// Moves what a database has to one with the old schema, where the columns of later versions do not exist.
const MOVE_SQLITE: &str = r"
import glob, os, sqlite3, sys
path, scripts, last, actor = sys.argv[1:]
new = sqlite3.connect(path + '.old')
new.create_function('OCTET_LENGTH', 1, lambda text: None if text is None else len(text.encode()))
for number, script in enumerate(sorted(name for name in os.listdir(scripts) if name <= last), 1):
    new.executescript(open(os.path.join(scripts, script)).read())
    new.execute('CREATE TABLE IF NOT EXISTS haft_schema (version BIGINT PRIMARY KEY)')
    new.execute('INSERT INTO haft_schema VALUES (?)', (number,))
new.execute('ATTACH ? AS today', (path,))
columns = lambda schema, table: [row[1] for row in new.execute(f'PRAGMA {schema}.table_info({table})')]
for (table,) in new.execute('SELECT name FROM main.sqlite_master WHERE type = ? AND name <> ?', ('table', 'haft_schema')).fetchall():
    if kept := ', '.join(set(columns('main', table)) & set(columns('today', table))):
        new.execute(f'DELETE FROM main.{table}')
        new.execute(f'INSERT INTO main.{table} ({kept}) SELECT {kept} FROM today.{table}')
for table in ('calls', 'approvals'):
    new.execute(f'UPDATE main.{table} SET record = REPLACE(record, ?, ?)', (actor, ''))
new.commit()
new.close()
for end in ('', '-wal', '-shm'):
    if os.path.exists(path + end):
        os.remove(path + end)
os.rename(path + '.old', path)
";

/// The same in PostgreSQL, after the scripts have run in the schema `old`.
const MOVE_POSTGRES: &str = r"
SET session_replication_role = replica;
DO $$
DECLARE
    old RECORD;
    kept TEXT;
BEGIN
    FOR old IN SELECT table_name AS name FROM information_schema.tables
               WHERE table_schema = 'old' AND table_name <> 'haft_schema' LOOP
        SELECT string_agg(a.column_name, ', ') INTO kept
            FROM information_schema.columns a JOIN information_schema.columns b USING (table_name, column_name)
            WHERE a.table_schema = 'old' AND b.table_schema = 'public' AND table_name = old.name;
        IF kept IS NOT NULL THEN
            EXECUTE format('DELETE FROM old.%I', old.name);
            EXECUTE format('INSERT INTO old.%I (%s) SELECT %s FROM public.%I', old.name, kept, kept, old.name);
        END IF;
    END LOOP;
END $$;
DROP SCHEMA public CASCADE;
ALTER SCHEMA old RENAME TO public;
";

fn scripts() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../haft-store/migrations")
}

/// How a principal of the local token is stored today, which it was not before people.
fn stored_actor() -> String {
    format!("\"actor\":{{\"id\":\"{LOCAL_OWNER}\",\"kind\":\"person\",\"token_name\":\"local\"}},")
}

#[expect(clippy::disallowed_methods, reason = "a test runs a program of its own")]
fn move_sqlite(home: &Path) {
    let output = std::process::Command::new("python3")
        .args(["-c", MOVE_SQLITE])
        .arg(home.join("haft.db"))
        .arg(scripts())
        .args([LAST_SCRIPT, &stored_actor()])
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
}

fn move_postgres(database: &haft_testkit::postgres::TestDatabase) {
    let mut names: Vec<_> =
        std::fs::read_dir(scripts()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.retain(|name| name.to_str().is_some_and(|name| name <= LAST_SCRIPT));
    names.sort();
    let mut sql = "CREATE SCHEMA old; SET search_path = old;\n\
                   CREATE TABLE haft_schema (version BIGINT PRIMARY KEY);\n"
        .to_owned();
    for (index, name) in names.iter().enumerate() {
        sql += &std::fs::read_to_string(scripts().join(name)).unwrap();
        sql.extend([format!("\nINSERT INTO haft_schema VALUES ({});\n", index + 1)]);
    }
    sql += MOVE_POSTGRES;
    for table in ["calls", "approvals"] {
        let actor = stored_actor();
        sql.extend([format!("UPDATE public.{table} SET record = REPLACE(record, '{actor}', '');\n")]);
    }
    database.execute(&sql).unwrap();
}

/// What a server stored before people.
struct Stored {
    agent: String,
    ops: String,
    chats: [String; 2],
    calls: [Value; 2],
    waiting: [Value; 2],
}

/// Stores as the local token, and as a token of an agent: a chat, a call, and a call that waits.
async fn store(server: &Server) -> Stored {
    for name in ["echo", "guarded"] {
        server.create(function_tool(name, "echo")).await;
    }
    let rule = json!({"name": "ask", "match": {"tools": ["guarded"]}, "effect": "approve"});
    assert_eq!(server.put("/api/policy", json!({"rules": [rule]})).await.0, 200);
    let token = async |body: Value| {
        let (status, answer) = server.post("/api/tokens", body).await;
        assert_eq!(status, 201, "{answer}");
        answer["data"]["token"].as_str().unwrap().to_owned()
    };
    let agent = token(json!({"name": "agent"})).await;
    let ops = token(json!({"name": "ops", "role": "admin"})).await;
    let (mut chats, mut calls, mut waiting) = (Vec::new(), Vec::new(), Vec::new());
    for value in [server.token.as_str(), &agent] {
        let send = async |path: &str, body: Value| with(server, value, Method::POST, path, body).await.1;
        let chat = send("/api/chats", json!({"title": "Mine"})).await;
        chats.push(format!("/api/chats/{}", chat["data"]["id"].as_str().unwrap()));
        calls.push(send("/api/tools/echo/invoke", json!({"args": {}})).await["call_id"].clone());
        waiting.push(send("/api/tools/guarded/invoke", json!({"args": {"n": 1}})).await);
    }
    Stored {
        agent,
        ops,
        chats: chats.try_into().unwrap(),
        calls: calls.try_into().unwrap(),
        waiting: waiting.try_into().unwrap(),
    }
}

async fn check(server: &Server, stored: &Stored) {
    let get = async |value: &str, path: &str| with(server, value, Method::GET, path, Value::Null).await;
    let who = get(&server.token, "/api/session").await.1["data"].clone();
    assert_eq!((&who["actor"]["id"], &who["owner_id"]), (&json!(LOCAL_OWNER), &json!("local")), "{who}");
    for (value, name, role) in [(&stored.agent, "agent", "caller"), (&stored.ops, "ops", "admin")] {
        let who = get(value, "/api/session").await.1["data"].clone();
        let found = (&who["name"], &who["role"], &who["actor"]);
        assert_eq!(found, (&json!(name), &json!(role), &Value::Null), "{who}");
    }
    let [of_local, of_agent] = &stored.chats;
    assert_eq!(get(&stored.agent, of_agent).await.0, 200);
    assert_eq!(get(&stored.agent, of_local).await.0, 404);
    let (_, chat) = get(&server.token, of_local).await;
    assert_eq!(chat["data"]["owner_id"], who["owner_id"], "{chat}");
    let (_, calls) = get(&stored.agent, "/api/calls").await;
    assert_eq!(calls["data"]["total"], 2, "{calls}");
    let (_, calls) = get(&stored.ops, &format!("/api/calls?actor={LOCAL_OWNER}")).await;
    assert_eq!(calls["data"]["total"], 2, "{calls}");
    for call in &stored.calls {
        let path = format!("/api/calls/{}", call.as_str().unwrap());
        assert_eq!(get(&stored.ops, &path).await.1["data"]["status"], "success");
    }
    let [of_local, of_agent] = &stored.waiting;
    for (waiting, approver) in [(of_local, &stored.ops), (of_agent, &server.token)] {
        let (status, answer) = decide(server, approver, &waiting["approval_id"], "approve", json!({})).await;
        assert_eq!(status, 200, "{answer}");
        assert_eq!(finished(server, &waiting["call_id"]).await["status"], "success");
    }
}

#[tokio::test]
async fn a_home_of_a_version_before_people_opens() {
    let mut server = Server::start().await;
    let stored = store(&server).await;
    server.halt().await;
    move_sqlite(server.home.path());
    let server = server.restart().await;
    check(&server, &stored).await;
}

#[tokio::test]
async fn a_postgres_database_of_a_version_before_people_opens() {
    let database = database().await;
    let mut server = on(&database.url).await;
    let stored = store(&server).await;
    server.halt().await;
    drop(server);
    move_postgres(&database);
    let server = on(&database.url).await;
    check(&server, &stored).await;
}
