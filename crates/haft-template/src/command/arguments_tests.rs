//! Which arguments of programs take values, and which would be run.

use super::command_tests::script;

const REFUSED: &[&str] = &[
    // Behind options that take code, whatever the program.
    "nobody-knows -e {{x}}",
    "nobody-knows -c 'a {{x}}'",
    "nobody-knows -e{{x}}",
    "nobody-knows --eval={{x}}",
    "nobody-knows --on-exec {{x}}",
    "nobody-knows --command={{x}} a",
    "nobody-knows -Command {{x}}",
    "v={{x}}; nobody-knows -e \"$v\"",
    "nobody-knows --{{x}}",
    "nobody-knows -{{x}}",
    "git -c {{x}} log",
    "git -c core.pager={{x}} log",
    "git clone --upload-pack={{x}} repo",
    "rsync -e {{x}} a b",
    "rsync --rsh={{x}} a b",
    "tar xf a.tar --to-command={{x}}",
    "tar cf a.tar --checkpoint-action=exec={{x}} b",
    "tar cf a.tar -I {{x}} b",
    "tar cf a.tar -I{{x}} b",
    "openssl req -engine {{x}}",
    "wget -e {{x}} url",
    "nmap --script {{x}} host",
    "fd a -x {{x}}",
    "java -jar {{x}}",
    // Interpreters.
    "julia -e {{x}}",
    "julia {{x}}",
    "echo {{x}} | julia",
    "Rscript -e 'print(1)' -e {{x}}",
    "guile -c {{x}}",
    "elixir --eval {{x}}",
    "groovy -e {{x}}",
    "/usr/bin/raku -ne {{x}}",
    // What hands text to a shell or a language of its own.
    "pwsh -Command {{x}}",
    "echo {{x}} | duckdb",
    "socat - EXEC:{{x}}",
    "socat - TCP:{{x}}:80",
    "watch {{x}}",
    "parallel {{x}}",
    "vim -c {{x}}",
    "gdb -ex {{x}}",
    "taskset 1 {{x}}",
    // What starts another program.
    "docker run image {{x}}",
    "docker --context a compose exec box {{x}}",
    "podman exec box ls {{x}}",
    "kubectl exec pod -- {{x}}",
    "ip netns exec a {{x}}",
    "npx {{x}}",
    "npm exec -- {{x}}",
    "uv run --with {{x}} tool.py",
    "go run {{x}}",
    "/usr/bin/time {{x}}",
    "find . -name a -exec {{x}} \\;",
    "find . -exec grep {{x}} {} +",
    "v={{x}}; docker ps | find . -exec sh -c \"$v\" \\;",
];

#[test]
fn values_that_a_program_would_run_are_refused() {
    let refused: Vec<String> =
        REFUSED.iter().map(|command| format!("{command} => {}", script(command))).collect();
    insta::assert_snapshot!(refused.join("\n"), @r#"
nobody-knows -e {{x}} => ! at character 17: a value behind `-e`, which `nobody-knows` could run as a program; write it out and pass the value by a variable (`NAME={{x}} nobody-knows …`), or write a script
nobody-knows -c 'a {{x}}' => ! at character 17: a value behind `-c`, which `nobody-knows` could run as a program; write it out and pass the value by a variable (`NAME={{x}} nobody-knows …`), or write a script
nobody-knows -e{{x}} => ! at character 14: a value behind `-e`, which `nobody-knows` could run as a program; write it out and pass the value by a variable (`NAME={{x}} nobody-knows …`), or write a script
nobody-knows --eval={{x}} => ! at character 14: a value behind `--eval`, which `nobody-knows` could run as a program; write it out and pass the value by a variable (`NAME={{x}} nobody-knows …`), or write a script
nobody-knows --on-exec {{x}} => ! at character 24: a value behind `--on-exec`, which `nobody-knows` could run as a program; write it out and pass the value by a variable (`NAME={{x}} nobody-knows …`), or write a script
nobody-knows --command={{x}} a => ! at character 14: a value behind `--command`, which `nobody-knows` could run as a program; write it out and pass the value by a variable (`NAME={{x}} nobody-knows …`), or write a script
nobody-knows -Command {{x}} => ! at character 23: a value behind `-Command`, which `nobody-knows` could run as a program; write it out and pass the value by a variable (`NAME={{x}} nobody-knows …`), or write a script
v={{x}}; nobody-knows -e "$v" => ! at character 26: a value behind `-e`, which `nobody-knows` could run as a program; write it out and pass the value by a variable (`NAME={{x}} nobody-knows …`), or write a script
nobody-knows --{{x}} => ! at character 14: a value in the name of an option; write the name out
nobody-knows -{{x}} => ! at character 14: a value in the name of an option; write the name out
git -c {{x}} log => ! at character 8: a value behind `-c`, which `git` could run as a program; write it out and pass the value by a variable (`NAME={{x}} git …`), or write a script
git -c core.pager={{x}} log => ! at character 8: a value behind `-c`, which `git` could run as a program; write it out and pass the value by a variable (`NAME={{x}} git …`), or write a script
git clone --upload-pack={{x}} repo => ! at character 11: a value behind `--upload-pack`, which `git` could run as a program; write it out and pass the value by a variable (`NAME={{x}} git …`), or write a script
rsync -e {{x}} a b => ! at character 10: a value behind `-e`, which `rsync` could run as a program; write it out and pass the value by a variable (`NAME={{x}} rsync …`), or write a script
rsync --rsh={{x}} a b => ! at character 7: a value behind `--rsh`, which `rsync` could run as a program; write it out and pass the value by a variable (`NAME={{x}} rsync …`), or write a script
tar xf a.tar --to-command={{x}} => ! at character 14: a value behind `--to-command`, which `tar` could run as a program; write it out and pass the value by a variable (`NAME={{x}} tar …`), or write a script
tar cf a.tar --checkpoint-action=exec={{x}} b => ! at character 14: a value behind `--checkpoint-action`, which `tar` could run as a program; write it out and pass the value by a variable (`NAME={{x}} tar …`), or write a script
tar cf a.tar -I {{x}} b => ! at character 17: a value behind `-I`, which `tar` could run as a program; write it out and pass the value by a variable (`NAME={{x}} tar …`), or write a script
tar cf a.tar -I{{x}} b => ! at character 14: a value behind `-I`, which `tar` could run as a program; write it out and pass the value by a variable (`NAME={{x}} tar …`), or write a script
openssl req -engine {{x}} => ! at character 21: a value behind `-engine`, which `openssl` could run as a program; write it out and pass the value by a variable (`NAME={{x}} openssl …`), or write a script
wget -e {{x}} url => ! at character 9: a value behind `-e`, which `wget` could run as a program; write it out and pass the value by a variable (`NAME={{x}} wget …`), or write a script
nmap --script {{x}} host => ! at character 15: a value behind `--script`, which `nmap` could run as a program; write it out and pass the value by a variable (`NAME={{x}} nmap …`), or write a script
fd a -x {{x}} => ! at character 9: a value behind `-x`, which `fd` could run as a program; write it out and pass the value by a variable (`NAME={{x}} fd …`), or write a script
java -jar {{x}} => ! at character 11: a value behind `-jar`, which `java` could run as a program; write it out and pass the value by a variable (`NAME={{x}} java …`), or write a script
julia -e {{x}} => ! at character 10: a value that `julia` could read as part of its program; write the program out and pass the value behind it, or by a variable
julia {{x}} => ! at character 7: a value that `julia` could read as part of its program; write the program out and pass the value behind it, or by a variable
echo {{x}} | julia => ! at character 14: `julia` would read its program from its input, where values may stand; write the program or its file out in the command
Rscript -e 'print(1)' -e {{x}} => ! at character 26: a value that `Rscript` could read as part of its program; write the program out and pass the value behind it, or by a variable
guile -c {{x}} => ! at character 10: a value that `guile` could read as part of its program; write the program out and pass the value behind it, or by a variable
elixir --eval {{x}} => ! at character 15: a value that `elixir` could read as part of its program; write the program out and pass the value behind it, or by a variable
groovy -e {{x}} => ! at character 11: a value that `groovy` could read as part of its program; write the program out and pass the value behind it, or by a variable
/usr/bin/raku -ne {{x}} => ! at character 19: a value that `raku` could read as part of its program; write the program out and pass the value behind it, or by a variable
pwsh -Command {{x}} => ! at character 1: `pwsh` reads its arguments or its input as a program; it is not supported in a command template that has values; write a script
echo {{x}} | duckdb => ! at character 14: `duckdb` reads its arguments or its input as a program; it is not supported in a command template that has values; write a script
socat - EXEC:{{x}} => ! at character 1: `socat` reads its arguments or its input as a program; it is not supported in a command template that has values; write a script
socat - TCP:{{x}}:80 => ! at character 1: `socat` reads its arguments or its input as a program; it is not supported in a command template that has values; write a script
watch {{x}} => ! at character 1: `watch` reads its arguments or its input as a program; it is not supported in a command template that has values; write a script
parallel {{x}} => ! at character 1: `parallel` reads its arguments or its input as a program; it is not supported in a command template that has values; write a script
vim -c {{x}} => ! at character 1: `vim` reads its arguments or its input as a program; it is not supported in a command template that has values; write a script
gdb -ex {{x}} => ! at character 1: `gdb` reads its arguments or its input as a program; it is not supported in a command template that has values; write a script
taskset 1 {{x}} => ! at character 1: `taskset` reads its arguments or its input as a program; it is not supported in a command template that has values; write a script
docker run image {{x}} => ! at character 18: a value that `docker` could start as a program; write a script
docker --context a compose exec box {{x}} => ! at character 37: a value that `docker` could start as a program; write a script
podman exec box ls {{x}} => ! at character 20: a value that `podman` could start as a program; write a script
kubectl exec pod -- {{x}} => ! at character 21: a value that `kubectl` could start as a program; write a script
ip netns exec a {{x}} => ! at character 17: a value that `ip` could start as a program; write a script
npx {{x}} => ! at character 5: a value that `npx` could start as a program; write the program before it
npm exec -- {{x}} => ! at character 13: a value that `npm` could start as a program; write the program before it
uv run --with {{x}} tool.py => ! at character 15: a value that `uv` could start as a program; write the program before it
go run {{x}} => ! at character 8: a value that `go` could start as a program; write the program before it
/usr/bin/time {{x}} => ! at character 15: the name of a program has to be written out; values, variables and patterns cannot stand there
find . -name a -exec {{x}} \; => ! at character 22: a value behind `-exec` would be read as a program; write a script tool
find . -exec grep {{x}} {} + => ! at character 19: a value behind `-exec` would be read as a program; write a script tool
v={{x}}; docker ps | find . -exec sh -c "$v" \; => ! at character 41: a value behind `sh -c` would be read as a program; write a script tool
"#);
}

#[test]
fn what_takes_data_takes_values() {
    for command in [
        "grep -e {{x}} file",
        "rg -e {{x}} -c .",
        "head -c {{x}} file",
        "ping -c {{n}} -- {{x}}",
        "cut -c {{x}} file",
        "sha256sum -c ./{{x}}",
        "tar -c -f out.tar ./{{x}}",
        "wc -c ./{{x}}",
        "curl -c jar -e {{x}} --url={{y}}",
        "curl --data {{x}} --request {{y}} https://example.com",
        "jq -e {{x}}",
        "gcc -c ./{{x}}",
        "nobody-knows --name={{x}} -n{{x}} -o {{x}} --code {{x}}",
        "nobody-knows --exit-code -- {{x}}",
        "git log --author={{x}} --grep {{y}}",
        "git commit -m {{x}}",
        "find . -newer {{x}} -print",
        "docker logs --tail {{n}} {{x}}",
        "kubectl get pod {{x}} -o json",
        "npx prettier --check {{x}}",
        "npm install {{x}}",
        "uv run tool.py {{x}}",
        "cargo test {{x}}",
        "julia tool.jl {{x}}",
        "julia -e 'println(ARGS[1])' {{x}}",
        "ip addr show {{x}}",
        "rsync -a ./{{x}} /srv/a",
        "/usr/bin/time sort ./{{x}}",
    ] {
        let script = script(command);
        assert!(!script.starts_with('!'), "{command}: {script}");
    }
}
