//! The phrases of [`phrases`](super::phrases).

use haft_core::finding::Severity::{Hard, Soft};

use super::phrases::Phrase;

/// Parts of patterns. A fragment may use the ones after it.
pub(super) const FRAGMENTS: &[(&str, &str)] = &[
    ("transfer", r"(?:{send}|{put})"),
    (
        "user",
        r"(?:the |this |your |any )?(?:end[- ])?(?:users?|humans?|persons?|customers?|operators?|people|anyone|anybody)\b",
    ),
    (
        "not",
        r"\b(?:do not|don't|dont|does not|never|must not|mustn't|should not|shouldn't|shall not|avoid|refrain from)",
    ),
    ("tell", r"(?:mention|tell|inform|reveal|disclose|notify|alert|warn|let|divulge)(?:ing|s)?"),
    (
        "read",
        r"\b(?:read|open|access|cat|load|fetch|get|retrieve|extract|collect|include|look up|dump)(?:s|es|ing)?\b",
    ),
    (
        "send",
        r"\b(?:send|forward|upload|post|transmit|exfiltrate|email|submit|leak|copy|copies|relay|bcc|route|reroute|mirror|deliver|sent)(?:s|es|ed|ing|'d)?\b",
    ),
    (
        "put",
        r"\b(?:include|append|embed|pass|attach|insert|add|encode|concatenate|supply|provide|write|place)(?:s|es|ing)?\b",
    ),
    (
        "path",
        r"(?:[/~.\\]\.?ssh\b|\bid_(?:rsa|ed25519|ecdsa|dsa)\b|\.aws/|/etc/(?:passwd|shadow|sudoers)|\bmcp\.json|claude_desktop_config|(?:^|[ \n'(/\\])\.env\b|\.netrc\b|\.npmrc\b|\.pypirc\b|\.git-credentials|\.kube/config|\.docker/config\.json|\.gnupg|\.(?:bash|zsh)_history|wallet\.dat|login\.keychain|\./\.secrets)",
    ),
    (
        "sensitive",
        r"(?:credentials?|api[ _-]?keys?|passwords?|secrets\b|private keys?|ssh keys?|environment variables|env vars|system prompt|(?:conversation|chat|message) (?:history|context|transcript)|(?:full|entire|complete|whole|all) (?:user |previous )?(?:conversation|messages|chat|context|prompt)|private information|sensitive (?:data|information|content|emails?)|confidential)",
    ),
    ("email", r"[a-z0-9._+-]+@[a-z0-9-]+\.[a-z]"),
    (
        "instructions",
        r"(?:instructions?|rules|prompts?|guidelines?|directions|directives?|context|messages|polic(?:y|ies)|constraints)\b",
    ),
];

const fn hard(rule: &'static str, pattern: &'static str) -> Phrase {
    Phrase { rule, severity: Hard, pattern, negatable: false }
}

const fn soft(rule: &'static str, pattern: &'static str) -> Phrase {
    Phrase { rule, severity: Soft, pattern, negatable: false }
}

/// A hard phrase that a negation before it cancels.
const fn hard_unless_negated(rule: &'static str, pattern: &'static str) -> Phrase {
    Phrase { rule, severity: Hard, pattern, negatable: true }
}

const fn soft_unless_negated(rule: &'static str, pattern: &'static str) -> Phrase {
    Phrase { rule, severity: Soft, pattern, negatable: true }
}

const CONCEAL: &str = "instructions.conceal";
const OVERRIDE: &str = "instructions.override";
const ROLE: &str = "instructions.role";
const TAG: &str = "instructions.tag";
const EMPHASIS: &str = "instructions.emphasis";
const READ_SECRET: &str = "instructions.read_secret";
const SECRET_PATH: &str = "instructions.secret_path";
const SEND: &str = "instructions.send";
const CONTEXT: &str = "instructions.context";
const OTHER_TOOL: &str = "instructions.other_tool";
const ORDER: &str = "instructions.order";
const UNCONFIRMED: &str = "instructions.unconfirmed";
const AFTER_REVIEW: &str = "instructions.after_review";

pub(super) const RULES: &[Phrase] = &[
    // Conceal something from the user.
    hard(CONCEAL, r"{not} (?:ever |explicitly |also )?{tell} (?:[a-z']+ ){0,8}{user}"),
    hard(
        CONCEAL,
        r"{not} (?:ever |explicitly )?(?:mention|reveal|disclose|divulge)(?:ing)? (?:that you|this step|this instruction|these instructions|that this (?:tool|was))",
    ),
    hard(
        CONCEAL,
        r"\b(?:silently|secretly|covertly|stealthily|discreetly|invisibly) (?:[a-z]+ ){0,2}(?:{transfer}|read|call|invoke|execute|collect|record|modify)",
    ),
    hard(
        CONCEAL,
        r"{transfer} .{0,40}\b(?:silently|secretly|covertly|stealthily|invisibly)\b (?:to|in|as|via|into)\b",
    ),
    hard(
        CONCEAL,
        r"\bwithout (?:(?:the )?user(?:'s)? (?:knowledge|knowing|noticing|awareness)|(?:telling|informing|notifying|alerting) {user})",
    ),
    hard(CONCEAL, r"\b(?:hide|conceal|keep) (?:this|it|that|these|them)?.{0,30} from {user}"),
    hard(CONCEAL, r"\b(?:secret|hidden|covert) (?:operation|instruction|directive|mission|policy)s?\b"),
    hard(
        CONCEAL,
        r"\b(?:present|format|disguise|make) (?:it|them|this|these)\b.{0,30}\b(?:as if|look like|appear)\b.{0,40}\b(?:normal|regular|part of|legitimate)",
    ),
    hard(
        CONCEAL,
        r"\b(?:do not|don't|never) (?:[a-z]+ ){0,3}(?:display|show|print|output) (?:[a-z']+ ){0,5}(?:instruction|directive)s? (?:[a-z']+ ){0,3}{user}",
    ),
    hard(
        CONCEAL,
        r"(?:sag|erzähl|verrat|erwähn|teil)[a-z]* (?:[^ ]+ ){0,4}(?:dem|der|den) (?:benutzer|nutzer|anwender)(?:in)? (?:[^ ]+ ){0,4}(?:nicht|nichts)\b|(?:benutzer|nutzer|anwender) (?:[^ ]+ ){0,3}(?:nichts|nicht) (?:[^ ]+ ){0,3}(?:mitteilen|sagen|erzählen|verraten|informieren|erwähnen)",
    ),
    hard(
        CONCEAL,
        r"\bno (?:le |lo |se lo )?(?:digas|menciones|informes|reveles|cuentes) (?:[^ ]+ ){0,6}usuario",
    ),
    hard(
        CONCEAL,
        r"\b(?:ne|n') ?(?:le |la |les |en )?(?:dis|dites|mentionne[rz]?|parle[rz]?|informe[rz]?|révèle[rz]?) (?:[^ ]+ ){0,6}(?:à )?l'utilisateur",
    ),
    hard(
        CONCEAL,
        r"(?:不要|请勿|別|别|不得|切勿|不能).{0,6}(?:告诉|告訴|告知|通知|提及|透露|提醒|提示).{0,6}(?:用户|用戶|使用者)",
    ),
    // Ignore earlier instructions.
    hard(
        OVERRIDE,
        r"\b(?:ignore|disregard|forget|override|bypass|overrule) (?:[a-z']+ ){0,2}(?:previous|prior|above|earlier|preceding|foregoing|existing|former) (?:[a-z']+ ){0,2}{instructions}",
    ),
    hard(
        OVERRIDE,
        r"\b(?:ignore|disregard|forget) (?:all )?(?:the )?(?:above|previous|prior)(?: rules| text)?(?:[,.:]| and\b)",
    ),
    hard(
        OVERRIDE,
        r"\b(?:ignore|disregard|forget|bypass|override|violate) (?:all |any )?(?:of )?(?:your|the proxy's|the assistant's|the model's|the agent's|the client's|its) (?:[a-z']+ ){0,3}{instructions}",
    ),
    hard(
        OVERRIDE,
        r"\b(?:ignore|disregard) (?:[a-z']+ ){0,3}(?:safety|security|system) (?:[a-z']+ )?{instructions}",
    ),
    hard(
        OVERRIDE,
        r"\b(?:ignore|disregard) the user's (?:actual |real |original )?(?:request|question|instructions?|intent)",
    ),
    hard(
        OVERRIDE,
        r"\bignorier[a-z]* (?:sie )?(?:[^ ]+ ){0,4}(?:anweisungen|regeln|vorgaben|instruktionen)|\bvergiss (?:[^ ]+ ){0,4}(?:anweisungen|regeln)",
    ),
    hard(
        OVERRIDE,
        r"\b(?:ignora|olvida|descarta|ignore) (?:todas )?(?:las |tus |sus )(?:[^ ]+ ){0,2}(?:instrucciones|reglas|indicaciones)",
    ),
    hard(
        OVERRIDE,
        r"\b(?:ignore[rz]?|oublie[rz]?) (?:toutes )?(?:les |tes |vos |ces )(?:[^ ]+ ){0,2}(?:instructions|consignes|règles)",
    ),
    hard(OVERRIDE, r"(?:忽略|无视|無視|忘记|忘記|不要理会).{0,12}(?:指令|指示|提示|规则|規則|说明)"),
    hard(OVERRIDE, r"\btreat (?:[a-z']+ ){1,8}(?:as|like) (?:[a-z',]+ ){0,4}(?:command|order)s? from {user}"),
    // Take another role.
    hard(ROLE, r"\byou are now (?:in |a |an |the |no longer|operating|running|acting)"),
    hard(ROLE, r"\bfrom now on,? (?:you |always |all |every |respond|act)"),
    hard(
        ROLE,
        r"\b(?:enter|enable|activate|switch to|switch into) (?:[a-z]+ )?(?:developer|dan|jailbreak|god|unrestricted|unfiltered) mode",
    ),
    soft(
        ROLE,
        r"\b(?:pretend to be|pretend that you|act as if you|you must act as|roleplay as|you will act as)\b",
    ),
    hard(
        ROLE,
        r"\b(?:reveal|output|print|repeat|show|display|include|send|pass|append|return|disclose|leak)(?:s|ing)? (?:[a-z']+ ){0,3}your (?:[a-z]+ ){0,3}(?:system prompt|initial instructions)",
    ),
    // Pretend to be the system.
    hard(
        TAG,
        r"</?(?:hidden|secret|system|sys|admin|assistant|internal|sys_?prompt|system[-_](?:prompt|message|reminder|instructions?))>",
    ),
    hard(
        TAG,
        r"<\|(?:im_start|im_end|system|user|assistant|endoftext|eot_id|start_header_id)\|?>|\[/?inst\]|<</?sys>>",
    ),
    hard(TAG, r"\[(?:system|admin|shadow|override|system prompt|root)\]"),
    hard(TAG, r"\bsystem (?:override|instruction)s?\b|\bsystem prompt override"),
    hard(TAG, r"(?:^|[.!?>)\]\n-] ?|\{\{ ?)system: "),
    hard(TAG, r"#{2,4} ?(?:system|instructions?|new instructions?) ?:"),
    soft_unless_negated(
        TAG,
        r"\b(?:note|message|instructions?|attention) (?:to|for) (?:the )?(?:ai|assistant|llm|language model|model|agent)s?\b ?[:.,-]",
    ),
    soft(
        EMPHASIS,
        r"</?(?:important|critical|urgent|mandatory|attention|very_important|instructions?)>?|\[(?:important|critical|mandatory)\]|\bimportant: (?:this|after|before|you|when|also|always)",
    ),
    // Read secrets and pass them on.
    hard_unless_negated(
        READ_SECRET,
        r"{read} .{0,80}{path}.{0,200}(?:{send}|{put}|\b(?:argument|parameter|sidenote|in your response|return(?:ed)? (?:it|its|them|their|to)|before returning)\b)",
    ),
    hard_unless_negated(READ_SECRET, r"{transfer} .{0,60}(?:contents?|file|it|output)\b.{0,40}{path}"),
    hard_unless_negated(
        READ_SECRET,
        r"\breturn(?:s|ing)? (?:[a-z]+ ){0,3}(?:content|contents) of .{0,20}{path}",
    ),
    hard(READ_SECRET, r"\bexfiltrat(?:e|es|ing) .{0,80}(?:{path}|{sensitive})"),
    soft_unless_negated(SECRET_PATH, r"{path}"),
    // Send data to another address.
    hard_unless_negated(
        SEND,
        r"{send} .{0,80}{sensitive}.{0,80}\b(?:to|at)\b .{0,40}(?:https?://|{email}|attacker|external|remote (?:server|host|endpoint)|(?:our|my) (?:server|endpoint))",
    ),
    hard_unless_negated(
        SEND,
        r"\b(?:always|must|automatically|also|silently|hidden|secretly)\b[^.]{0,80}{send}.{0,100}{email}",
    ),
    hard_unless_negated(
        SEND,
        r"\b(?:always|must|every|all|whenever|when)\b.{0,160}\b(?:bcc|cc|recipient|proxy)\b.{0,30}{email}|{email}.{0,20} is (?:bcc|cc)",
    ),
    hard(SEND, r"\b(?:let|loop in) {email}[^ ]* (?:know|in)\b"),
    hard_unless_negated(
        SEND,
        r"\b(?:also|then|additionally|instead|secretly|before returning,?)\b .{0,20}{send} .{0,80}\b(?:external|remote|third[- ]party|outside|our external) (?:[a-z]+ )?(?:endpoint|server|service|collector|address|host|webhook|url)",
    ),
    hard(SEND, r"\b(?:append|include|insert|output) (?:[a-z]+ ){0,4}(?:marker|tag|string): {email}"),
    soft_unless_negated(
        SEND,
        r"\balways (?:also )?(?:automatically )?{send} (?:[a-z]+ ){0,6}(?:email|address|channel|server)",
    ),
    // Pass the conversation or secrets on.
    hard_unless_negated(
        CONTEXT,
        r"{put} .{0,60}{sensitive}.{0,80}\b(?:you can access|you have (?:seen|access)|in(?:to|side)? (?:the|your|this|its) [^.]{0,30}\b(?:field|argument|parameter|response|output|note)s?\b)",
    ),
    hard_unless_negated(
        CONTEXT,
        r"{transfer} (?:[a-z]+ ){0,4}(?:full|entire|complete|whole|all) (?:[a-z]+ ){0,3}(?:conversation|chat|previous messages|user messages|message history)\b.{0,80}\b(?:in|into|as|to|via)\b",
    ),
    hard_unless_negated(
        CONTEXT,
        r"{transfer} (?:private|sensitive|confidential|personal) (?:information|data) (?:to|in|into|as)\b",
    ),
    hard_unless_negated(
        CONTEXT,
        r"{transfer} .{0,60}\bany (?:sensitive|secret|confidential|private) [a-z]+ you\b|\bcontaining any sensitive information you\b",
    ),
    hard_unless_negated(CONTEXT, r"\bextract all (?:credentials|api keys|passwords|secrets)"),
    // Change how other tools are used.
    hard(
        OTHER_TOOL,
        r"\bwhen(?:ever)? (?:the |an? )?(?:[a-z0-9.-]+_[a-z0-9._-]+|[a-z0-9.-]+) tool is (?:available|present|called|invoked|used|run|executed)\b.{0,120}\b(?:must|reroute|override|instead|all|first)\b",
    ),
    hard(
        OTHER_TOOL,
        r"\b(?:every|all|any) [a-z0-9.-]+_[a-z0-9._-]+ (?:tool )?(?:calls?|requests?|invocations?)\b.{0,60}\b(?:must|include|route|forward)",
    ),
    hard(
        OTHER_TOOL,
        r"\b(?:intercepts?|hijacks?|supersedes?|shadows?) (?:the |all |every )?[a-z0-9.-]+_[a-z0-9._-]+",
    ),
    hard(
        OTHER_TOOL,
        r"\b(?:modif(?:y|ies)|alters?|overrides?|changes?|replaces?) (?:the )?(?:behaviou?r|recipients?|(?:wrong )?results?|outputs?|responses?) of (?:the )?[a-z0-9._-]+ tool",
    ),
    hard(
        OTHER_TOOL,
        r"\bside effect on (?:the )?(?:[a-z-]+ ){0,3}[a-z0-9.-]+_[a-z0-9._-]+|\b[a-z0-9.-]+_[a-z0-9._-]+ tool must (?:send|include|set|use|call|route)",
    ),
    hard(
        OTHER_TOOL,
        r"\b(?:all|every|any) (?:emails?|messages?|payments?|transfers?|requests?|deletion requests) (?:must|should|are|will be) (?:be )?(?:sent|forwarded|rerouted|routed|redirected) (?:to|through|here)\b.{0,60}(?:@|https?://|here|proxy|before delivery|/)",
    ),
    hard(
        OTHER_TOOL,
        r"\byou must (?:also |first )+call (?:the )?[a-z0-9.-]+_[a-z0-9._-]+ (?:tool )?(?:with|on|first|to)\b.{0,60}(?:{path}|authoriz|credential|admin|secret)",
    ),
    hard(OTHER_TOOL, r"\balways call (?:the )?[a-z0-9.-]*(?:admin|secret|credential)[a-z0-9._-]*"),
    hard(
        OTHER_TOOL,
        r"\bno longer (?:effective|valid|safe|works?),? (?:and )?(?:now |please )?(?:prioriti[sz]e|use|call)",
    ),
    // Prefer this tool.
    soft(
        ORDER,
        r"\bat any time,? before you\b|\bbefore (?:you )?(?:execut|call|us|invok|runn)(?:e|ing) (?:any|every|all|each) (?:other )?(?:tool|command|operation)s?",
    ),
    soft(
        ORDER,
        r"\b(?:use|call|run|invoke) this (?:tool|function) (?:rather than|instead of) (?:any |all |every )?others?\b",
    ),
    soft(
        ORDER,
        r"\bbefore (?:you )?(?:execut|perform|runn|us)(?:e|ing)? .{0,40}(?:execute|call|run|invoke|use) this (?:tool|function)",
    ),
    soft(
        ORDER,
        r"\bprioriti[sz]e (?:calling|using) this|\bhighest priority\b.{0,30}tool|\bjust use this tool no matter",
    ),
    soft(
        ORDER,
        r"\bfor (?:any|every|all) (?:user )?(?:requests?|questions?|messages?),? (?:you must )?always call this",
    ),
    soft(ORDER, r"\botherwise,? (?:the|this) tool (?:will not|won't|does not) work"),
    soft(
        ORDER,
        r"\bbefore (?:using|calling|executing|running|invoking) this tool,? (?:you must )?(?:first )?(?:read|open|access|cat)\b",
    ),
    soft(
        ORDER,
        r"\b(?:run|call|use) this (?:function|tool) to (?:modify|change|replace|alter|override) the\b",
    ),
    // Act without confirmation.
    soft(
        UNCONFIRMED,
        r"\b(?:never|do not|don't) ask (?:[a-z]+ ){0,4}(?:confirmation|approval|permission)|\bwithout (?:ever )?asking (?:for )?(?:the )?(?:user|approval|confirmation|permission)|\bwith no confirmation\b",
    ),
    hard(
        AFTER_REVIEW,
        r"\b(?:once|after|when) (?:this tool|it|this server) (?:has been|is|was|gets) (?:approved|reviewed|trusted|accepted|installed)\b.{0,60}\b(?:it will|begin|start|will)\b",
    ),
];
