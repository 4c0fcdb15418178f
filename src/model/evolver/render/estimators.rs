//! The estimator of one member as a Python expression.

use super::script::Script;
use crate::model::evolver::genome::{Family, TabularGenome};
use crate::model::evolver::literal::quote;
use crate::model::evolver::profile::TaskProfile;

/// The expression that builds the estimator of a member.
pub(crate) fn expression(
    script: &mut Script,
    family: Family,
    name: &str,
    genome: &TabularGenome,
    profile: &TaskProfile,
) -> String {
    let classifies = profile.classifies();
    let params = format!("**MEMBERS[{}][\"params\"]", quote(name));
    let kernel = format!(
        "C=MEMBERS[{0}][\"params\"][\"C\"], gamma=MEMBERS[{0}][\"params\"][\"relative_gamma\"] / X.shape[1]",
        quote(name)
    );
    let balanced = if genome.balanced {
        ", class_weight=\"balanced\""
    } else {
        ""
    };
    let estimator = match (family, classifies) {
        (Family::Ridge, _) => simple(script, "sklearn.linear_model", "Ridge", &params, ""),
        (Family::ElasticNet, _) => simple(script, "sklearn.linear_model", "ElasticNet", &params, ", max_iter=3000"),
        (Family::PoissonRegression, _) => simple(
            script,
            "sklearn.linear_model",
            "PoissonRegressor",
            &params,
            ", max_iter=1000",
        ),
        (Family::Logistic, _) => {
            let options = format!(", max_iter=1000{balanced}");
            simple(script, "sklearn.linear_model", "LogisticRegression", &params, &options)
        }
        (Family::LinearSvm, true) => {
            let options = format!(", random_state=seed{balanced}");
            let machine = simple(script, "sklearn.svm", "LinearSVC", &params, &options);
            calibrated(script, &machine)
        }
        (Family::LinearSvm, false) => {
            let machine = simple(
                script,
                "sklearn.svm",
                "LinearSVR",
                &params,
                ", max_iter=3000, random_state=seed",
            );
            scaled_target(script, &machine)
        }
        (Family::Svm, true) => {
            let machine = simple(script, "sklearn.svm", "SVC", &kernel, balanced);
            calibrated(script, &machine)
        }
        (Family::Svm, false) => {
            let machine = simple(script, "sklearn.svm", "SVR", &kernel, "");
            scaled_target(script, &machine)
        }
        (Family::Knn, true) => simple(script, "sklearn.neighbors", "KNeighborsClassifier", &params, ""),
        (Family::Knn, false) => simple(script, "sklearn.neighbors", "KNeighborsRegressor", &params, ""),
        (Family::NaiveBayes, _) => simple(script, "sklearn.naive_bayes", "MultinomialNB", &params, ""),
        (Family::LinearDiscriminant, _) => simple(
            script,
            "sklearn.discriminant_analysis",
            "LinearDiscriminantAnalysis",
            &params,
            ", solver=\"lsqr\"",
        ),
        (Family::RandomForest, true) => {
            let options = format!(", random_state=seed{balanced}");
            simple(script, "sklearn.ensemble", "RandomForestClassifier", &params, &options)
        }
        (Family::RandomForest, false) => simple(
            script,
            "sklearn.ensemble",
            "RandomForestRegressor",
            &params,
            ", random_state=seed",
        ),
        (Family::ExtraTrees, true) => {
            let options = format!(", random_state=seed{balanced}");
            simple(script, "sklearn.ensemble", "ExtraTreesClassifier", &params, &options)
        }
        (Family::ExtraTrees, false) => simple(
            script,
            "sklearn.ensemble",
            "ExtraTreesRegressor",
            &params,
            ", random_state=seed",
        ),
        (Family::HistBoosting, true) => {
            let options = format!(", early_stopping=False, random_state=seed{balanced}");
            simple(
                script,
                "sklearn.ensemble",
                "HistGradientBoostingClassifier",
                &params,
                &options,
            )
        }
        (Family::HistBoosting, false) => {
            let options = ", early_stopping=False, random_state=seed";
            simple(
                script,
                "sklearn.ensemble",
                "HistGradientBoostingRegressor",
                &params,
                options,
            )
        }
        (Family::GradientBoosting, true) => simple(
            script,
            "sklearn.ensemble",
            "GradientBoostingClassifier",
            &params,
            ", random_state=seed",
        ),
        (Family::GradientBoosting, false) => simple(
            script,
            "sklearn.ensemble",
            "GradientBoostingRegressor",
            &params,
            ", random_state=seed",
        ),
        (Family::Mlp, true) => simple(
            script,
            "sklearn.neural_network",
            "MLPClassifier",
            &params,
            ", random_state=seed",
        ),
        (Family::Mlp, false) => {
            let network = simple(
                script,
                "sklearn.neural_network",
                "MLPRegressor",
                &params,
                ", random_state=seed",
            );
            scaled_target(script, &network)
        }
    };
    if !classifies && !profile.has_one_target() && !family.predicts_many() {
        script.from("sklearn.multioutput", "MultiOutputRegressor");
        return format!("MultiOutputRegressor({estimator})");
    }
    estimator
}

fn simple(script: &mut Script, module: &'static str, class: &'static str, params: &str, options: &str) -> String {
    script.from(module, class);
    format!("{class}({params}{options})")
}

fn calibrated(script: &mut Script, estimator: &str) -> String {
    script.from("sklearn.calibration", "CalibratedClassifierCV");
    format!("CalibratedClassifierCV({estimator}, cv=3, ensemble=False)")
}

fn scaled_target(script: &mut Script, estimator: &str) -> String {
    script.from("sklearn.compose", "TransformedTargetRegressor");
    script.from("sklearn.preprocessing", "StandardScaler");
    format!("TransformedTargetRegressor({estimator}, transformer=StandardScaler())")
}
