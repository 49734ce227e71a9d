//! Whatever is written is read back as it was.

use haft_core::catalog::FileForm;
use haft_definition::dialect::{Defaults, read, read_value, write};
use proptest::prelude::*;

use crate::strategy;

pub(crate) const FORMS: [FileForm; 3] = [FileForm::Skill, FileForm::Yaml, FileForm::Json];

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_definition_survives_every_form(
        spec in strategy::spec(),
        enabled in prop::option::of(any::<bool>()),
    ) {
        for form in FORMS {
            let text = write(&spec, form, enabled);
            let reading = read(&text, form, &Defaults::default());
            let reading = reading.map_err(|problems| {
                TestCaseError::fail(format!("{form:?}: {}\n{text}", haft_core::problem::join(&problems)))
            })?;
            prop_assert_eq!(&reading.spec, &spec, "{:?}\n{}", form, text);
            prop_assert_eq!(reading.enabled, enabled);
            prop_assert_eq!(reading.form, form);
            // A mode above 0777 is spelled in decimal in JSON only, and questioned there.
            let doubts: Vec<_> = reading.warnings.iter().filter(|w| w.code != "decimal_mode").collect();
            prop_assert!(doubts.is_empty(), "{:?}: {:?}\n{}", form, doubts, text);
            // Writing what was read changes nothing.
            prop_assert_eq!(write(&reading.spec, form, enabled), text);
        }
    }

    #[test]
    fn api_responses_can_be_sent_back(spec in strategy::spec()) {
        let reading = read_value(serde_json::to_value(&spec).unwrap(), &Defaults::default());
        prop_assert_eq!(reading.map(|reading| reading.spec), Ok(spec));
    }
}
