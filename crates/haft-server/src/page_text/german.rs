//! The texts of the pages in German.

use haft_core::outcome::ErrorCode;
use haft_core::token::Role;
use haft_platform::accounts::LoginError;
use haft_platform::sign_on::SignOnError;

use super::texts::Texts;

pub(super) static TEXTS: Texts = Texts {
    lang: "de",
    go_on: "Weiter",
    back_to_login: "Zurück zur Anmeldung",
    close_page: "Sie können diese Seite schließen.",
    address_invalid: "Die Adresse ist ungültig.",
    internal_error: "Ein interner Fehler ist aufgetreten; siehe Protokoll des Servers.",

    log_in_title: "Bei haft anmelden",
    log_in: "Anmelden",
    token: "Token",
    link_hint: "Der Link meldet Sie auf diesem Gerät an, einmal.",
    token_hint: "Das Token dieser Installation steht in der Datei <code>tokens</code> ihres Verzeichnisses. \
                 <code>haft login-link</code> gibt einen Link aus, der ohne Token anmeldet. Wenn ein Administrator Sie \
                 eingeladen hat, öffnen Sie den Link der Einladung.",
    invalid_token: "Das Token ist ungültig oder abgelaufen.",
    invalid_link: "Der Anmelde-Link ist ungültig, abgelaufen oder schon benutzt. Erstellen Sie einen neuen mit \
                   `haft login-link`, oder bitten Sie einen Administrator um eine neue Einladung.",
    enter_token: "Geben Sie ein Token ein.",
    sign_on: "Anmeldung beim Identitätsanbieter",
    log_in_with: "Anmelden mit {name}",
    or: "oder",

    device_title: "Kommandozeile anmelden",
    device_lead: "Eine Kommandozeile will sich mit Ihren Rechten anmelden.",
    device_code: "Code, den Ihr Terminal zeigt",
    device_unknown_code: "Der Code ist ungültig, abgelaufen oder schon benutzt. Führen Sie `haft login` erneut aus.",
    computer: "Computer",
    says_it_is: "nennt sich {device}",
    says_it_is_at: "nennt sich {device} ({address})",
    tenant: "Mandant",
    you: "Angemeldet als",
    role: "Rolle",
    tools: "Tools",
    every_tool: "alle Tools",
    no_tool: "keine Tools",
    expires: "Läuft ab",
    expires_after: "nach {days} Tagen, oder früher mit Ihrem eigenen Token",
    device_hint: "Stimmen Sie nur zu, wenn Sie gerade <code>haft login</code> ausgeführt haben und Ihr Terminal \
                  diesen Code zeigt.",
    approve: "Zustimmen",
    deny: "Ablehnen",
    device_approved: "Zugestimmt: Die Kommandozeile ist in wenigen Sekunden angemeldet.",
    device_denied: "Abgelehnt: Die Kommandozeile erhält keinen Zugang.",
    device_says: "Der Computer nennt sich {device}.",

    consent_title: "Anwendung verbinden",
    consent_lead: "<strong>{name}</strong> will haft in Ihrem Namen nutzen.",
    application: "Anwendung",
    not_verified: "Name nicht geprüft",
    described_by: "Beschrieben von",
    described_by_itself: "sich selbst; jeder kann diesen Namen wählen",
    described_by_admin: "einem Administrator Ihres Mandanten",
    answer_goes_to: "Antwort geht an",
    local_program: "ein Programm auf diesem Computer",
    local_program_of_scheme: "ein Programm auf diesem Computer, das Links mit `{scheme}:` öffnet",
    connected_before: "Sie haben diese Anwendung schon einmal verbunden; Ihre frühere Auswahl ist eingestellt.",
    it_may: "Die Anwendung darf",
    asked_for_more: "Die Anwendung hat nach mehr gefragt, als Sie selbst dürfen.",
    all_tools: "Alle, die ich nutzen darf, jetzt {count}",
    only_these: "Nur diese:",
    choose_from_one_bundle: "Aus {count} Tools in 1 Bundle wählen",
    choose_from_bundles: "Aus {count} Tools in {bundles} Bundles wählen",
    names: "Namen",
    and_more: "und {count} weitere",
    patterns: "Namen und Muster, etwa <code>weather</code>, <code>web:*</code>, <code>tag:safe</code>",
    stays_connected: "Die Anwendung bleibt verbunden",
    until_disconnected: "Bis ich sie trenne",
    one_year: "Ein Jahr",
    ninety_days: "90 Tage",
    thirty_days: "30 Tage",
    one_day: "Einen Tag",
    consent_hint: "Erlauben Sie es nur, wenn Sie dies gerade selbst in der Anwendung begonnen haben.",
    allow: "Erlauben",
    allowed: "Erlaubt: {name} erhält Zugang.",
    denied: "Abgelehnt: Die Anwendung erhält keinen Zugang.",
    request_invalid: "Die Anfrage ist ungültig.",
    the_application: "der Anwendung",
    sent_back: "Sie werden zurückgeleitet. Ziel: {destination}.",
    if_nothing_happens: "Wenn nichts geschieht, klicken Sie auf die Schaltfläche; danach können Sie diese Seite schließen.",
    nothing_sent: "An die Anwendung wurde nichts gesendet. Sie können diese Seite schließen.",
    unknown_application: "Unbekannte Anwendung; lassen Sie sie sich neu registrieren.",
    logged_out: "Sie sind nicht mehr angemeldet; beginnen Sie in der Anwendung von vorn.",
    form_expired: "Das Formular ist abgelaufen oder stammt nicht von dieser Seite; beginnen Sie in der Anwendung von vorn.",
    needs_browser: "Melden Sie sich mit einem Browser an.",
    choose_role: "Wählen Sie, was die Anwendung darf.",
    more_than_requested: "Danach hat die Anwendung nicht gefragt, oder Sie dürfen es selbst nicht.",
    choose_tools: "Wählen Sie die Tools.",
    choose_some_tools: "Wählen Sie mindestens ein Tool oder alle.",
    too_many_rules: "Wählen Sie höchstens {max} Bundles und Muster.",
    choose_lifetime: "Wählen Sie, wie lange die Anwendung verbunden bleibt.",

    account_failed: "Das Konto wurde nicht verbunden",
    accounts: "Konten",

    of_code: |code| Some(code_text(code)),
    of_sign_on: sign_on_text,
    of_account_login: |error| match error {
        LoginError::OtherPerson => {
            Some("Eine andere Person hat diese Anmeldung begonnen; es wurde nichts verbunden.")
        }
        LoginError::NotLoggedIn => {
            Some("Melden Sie sich zuerst in diesem Browser bei haft an, und verbinden Sie dann erneut.")
        }
        LoginError::Login(_) => Some("Die Anmeldung bei dem Dienst ist fehlgeschlagen."),
        LoginError::Failed(error) => Some(code_text(error.code)),
    },
    of_role: |role| match role {
        Role::Viewer => "Betrachter",
        Role::Caller => "Aufrufer",
        Role::Editor => "Bearbeiter",
        Role::Admin => "Administrator",
    },
    of_choice: |role| match role {
        Role::Viewer => "Lesen, was ich sehen darf",
        Role::Caller => "Lesen und Tools aufrufen",
        Role::Editor => "Lesen, Tools aufrufen sowie Tools und Agenten ändern",
        Role::Admin => "Alles, auch Personen und Zugangsdaten",
    },
};

fn code_text(code: ErrorCode) -> &'static str {
    match code {
        ErrorCode::Unauthorized => "Sie sind nicht angemeldet.",
        ErrorCode::Forbidden | ErrorCode::ReadOnly => "Das ist nicht erlaubt.",
        ErrorCode::NotFound => "Das gibt es nicht, oder es ist abgelaufen.",
        ErrorCode::Conflict => "Das ist zurzeit nicht möglich.",
        ErrorCode::TooLarge => "Die Anfrage ist zu groß.",
        ErrorCode::RateLimited => "Zu viele Versuche; versuchen Sie es später erneut.",
        ErrorCode::StoreUnavailable | ErrorCode::Internal => {
            "Der Server kann das gerade nicht; versuchen Sie es später erneut."
        }
        _ => "Die Anfrage ist ungültig.",
    }
}

fn sign_on_text(error: &SignOnError) -> Option<String> {
    let text = match error {
        SignOnError::UnknownIssuer(issuer) => {
            format!("Es gibt keinen Aussteller `{issuer}`; gehen Sie zurück zur Anmeldung")
        }
        SignOnError::UnknownLogin => {
            "Diese Anmeldung ist unbekannt: Sie wurde schon benutzt, ist nach 10 Minuten \
                                      abgelaufen oder begann in einem anderen Browser; beginnen Sie von vorn"
                .to_owned()
        }
        SignOnError::MixedUp => {
            "Die Antwort kommt von einem anderen Aussteller als dem dieser Anmeldung; beginnen Sie von vorn"
                .to_owned()
        }
        SignOnError::Denied { issuer, reason } => format!("`{issuer}` hat die Anmeldung abgelehnt: {reason}"),
        SignOnError::Unreachable { issuer } => format!(
            "`{issuer}` antwortet nicht; versuchen Sie es später erneut, oder melden Sie sich mit einem Token oder \
             einem Link an. Offene Sitzungen gehen weiter"
        ),
        SignOnError::Invalid { issuer } => format!(
            "Die Antwort von `{issuer}` ist ungültig, darum wurde niemand angemeldet; ein Administrator findet den \
             Grund im Protokoll des Servers"
        ),
        SignOnError::Disabled => "Ihr Konto ist deaktiviert; fragen Sie einen Administrator".to_owned(),
        SignOnError::NothingAssigned { issuer, subject } => format!(
            "Sie sind bei `{issuer}` angemeldet, aber in haft ist Ihnen nichts zugewiesen; fragen Sie einen \
             Administrator, und nennen Sie ihm Ihre Kennung: {subject}"
        ),
        SignOnError::OtherTenant(tenant) => format!("Sie sind kein Mitglied des Mandanten `{tenant}`"),
        SignOnError::TenantFull(tenant) => format!(
            "Der Mandant `{tenant}` hat so viele Mitglieder, wie er haben darf; fragen Sie einen Administrator"
        ),
        SignOnError::TooManyOfAddress => {
            "Ihre Adresse hat in zehn Minuten zu viele Anmeldungen begonnen; beenden Sie \
                                          eine davon, oder versuchen Sie es später erneut"
                .to_owned()
        }
        SignOnError::TooMany => {
            "Zu viele Anmeldungen warten auf eine Antwort; versuchen Sie es später erneut".to_owned()
        }
        SignOnError::Service(_) => return None,
    };
    Some(text)
}
