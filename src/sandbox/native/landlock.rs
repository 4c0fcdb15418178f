//! Landlock, put on the program itself.

use std::os::fd::OwnedFd;

use landlock::{
    ABI, Access, AccessFs, AccessNet, CompatLevel, Compatible, PathBeneath, PathFd, Ruleset, RulesetAttr,
    RulesetCreated, RulesetCreatedAttr, Scope,
};

/// Newest Landlock interface whose rights are asked for; older kernels enforce what they know.
const LANDLOCK_ABI: ABI = ABI::V7;

/// A Landlock ruleset for the paths of the jail: everything readable, only the scratch places writable, no TCP, no
/// signals and no abstract sockets out of the domain. `None` when the kernel has no Landlock.
pub(super) fn ruleset(writable: &[&str]) -> Result<Option<OwnedFd>, String> {
    let build = || -> Result<RulesetCreated, landlock::RulesetError> {
        let all = AccessFs::from_all(LANDLOCK_ABI);
        let mut ruleset = Ruleset::default()
            .set_compatibility(CompatLevel::BestEffort)
            .handle_access(all)?
            .handle_access(AccessNet::from_all(LANDLOCK_ABI))?
            .scope(Scope::from_all(LANDLOCK_ABI))?
            .create()?;
        let rule = |path: &str, access| PathFd::new(path).ok().map(|fd| PathBeneath::new(fd, access));
        let read = AccessFs::from_read(LANDLOCK_ABI) | AccessFs::IoctlDev;
        if let Some(root) = rule("/", read) {
            ruleset = ruleset.add_rule(root)?;
        }
        for path in writable {
            if let Some(place) = rule(path, all) {
                ruleset = ruleset.add_rule(place)?;
            }
        }
        for device in ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"] {
            if let Some(device) = rule(device, AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::IoctlDev) {
                ruleset = ruleset.add_rule(device)?;
            }
        }
        Ok(ruleset)
    };
    build().map(Into::into).map_err(|e| e.to_string())
}
