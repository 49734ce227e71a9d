//! The skeleton of a new toolset. Its own test is run by hand and by the test of the command line, which may start
//! processes.

use haft_package::package::Package;
use haft_package::skeleton::skeleton;

#[test]
fn a_skeleton_is_a_valid_package_without_warnings() {
    for name in ["word-tools", "a", "123", "my_tools", "Wörter"] {
        let package = Package::open(skeleton(name).unwrap()).unwrap();
        assert_eq!(package.warnings, [], "{name}");
        assert_eq!(package.toolset.id.as_str(), name);
        assert_eq!(package.toolset.tools.len(), 1);
        let texts: Vec<&str> =
            package.files.iter().filter_map(|(path, _)| package.files.text(path.as_str())).collect();
        assert!(texts.iter().all(|text| !text.contains("@ID@") && !text.contains("@TITLE@")), "{name}");
    }
    assert_eq!(Package::open(skeleton("word-tools").unwrap()).unwrap().toolset.name, "Word tools");
    for bad in ["", "a/b", "a~b", "a:b", "..", "a b"] {
        assert!(skeleton(bad).is_err(), "{bad:?}");
    }
}
