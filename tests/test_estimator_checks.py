"""scikit-learn's checks of estimators, one by one: those that apply to `BGCL`, and why the others do not.

Checks that need no data run on `BGCL` itself. Checks that fit on an array run on `OnArrays`, which makes a graph of it:
they test what `fit` does to the estimator, which is the same for a graph.
"""

import numpy as np
import pytest
import sklearn
import torch
from sklearn.utils import estimator_checks
from torch_geometric.data import Data

from bgcl import BGCL

WITHOUT_DATA = [
    "check_do_not_raise_errors_in_init_or_set_params",
    "check_estimator_cloneable",
    "check_estimator_repr",
    "check_estimator_tags_renamed",
    "check_get_params_invariance",
    "check_mixin_order",
    "check_no_attributes_set_in_init",
    "check_parameters_default_constructible",
    "check_set_params",
    "check_valid_tag_types",
]

ON_ARRAYS = [
    "check_dont_overwrite_parameters",
    "check_estimators_fit_returns_self",
    "check_estimators_overwrite_params",
    "check_f_contiguous_array_estimator",
    "check_fit_check_is_fitted",
    "check_fit_score_takes_y",
    "check_positive_only_tag_during_fit",
    "check_readonly_memmap_input",
]

A_GRAPH = "the input is a graph, which bgcl.data.check_graph checks, not an array"
NO_METHOD = "BGCL has none of the methods predict, transform, score, decision_function and partial_fit"
ANOTHER_KIND = "BGCL is not a classifier, a regressor, a transformer, a clusterer or an outlier detector"

CANNOT_APPLY = {
    "check_all_zero_sample_weights_error": "fit has no sample_weight",
    "check_array_api_input": A_GRAPH,
    "check_array_api_input_and_values": A_GRAPH,
    "check_array_api_mixed_inputs": A_GRAPH,
    "check_array_api_same_namespace": A_GRAPH,
    "check_class_weight_balanced_classifiers": ANOTHER_KIND,
    "check_class_weight_balanced_linear_classifier": ANOTHER_KIND,
    "check_class_weight_classifiers": ANOTHER_KIND,
    "check_classifier_data_not_an_array": ANOTHER_KIND,
    "check_classifier_multioutput": ANOTHER_KIND,
    "check_classifier_not_supporting_multiclass": ANOTHER_KIND,
    "check_classifiers_classes": ANOTHER_KIND,
    "check_classifiers_multilabel_output_format_decision_function": ANOTHER_KIND,
    "check_classifiers_multilabel_output_format_predict": ANOTHER_KIND,
    "check_classifiers_multilabel_output_format_predict_proba": ANOTHER_KIND,
    "check_classifiers_multilabel_representation_invariance": ANOTHER_KIND,
    "check_classifiers_one_label": ANOTHER_KIND,
    "check_classifiers_one_label_sample_weights": ANOTHER_KIND,
    "check_classifiers_predictions": ANOTHER_KIND,
    "check_classifiers_regression_target": ANOTHER_KIND,
    "check_classifiers_train": ANOTHER_KIND,
    "check_clusterer_compute_labels_predict": ANOTHER_KIND,
    "check_clustering": ANOTHER_KIND,
    "check_complex_data": A_GRAPH,
    "check_dataframe_column_names_consistency": A_GRAPH,
    "check_decision_proba_consistency": NO_METHOD,
    "check_dict_unchanged": NO_METHOD + "; test_estimator.py tests the same of its methods",
    "check_dtype_object": A_GRAPH,
    "check_estimator": "it runs all checks",
    "check_estimator_sparse_array": A_GRAPH,
    "check_estimator_sparse_matrix": A_GRAPH,
    "check_estimator_sparse_tag": A_GRAPH,
    "check_estimators_data_not_an_array": A_GRAPH,
    "check_estimators_dtypes": A_GRAPH,
    "check_estimators_empty_data_messages": A_GRAPH,
    "check_estimators_nan_inf": A_GRAPH,
    "check_estimators_partial_fit_n_features": NO_METHOD,
    "check_estimators_pickle": "a BGCL is never pickled: it is saved as safetensors and TOML, see test_checkpoint.py",
    "check_estimators_unfitted": NO_METHOD + "; test_estimator.py tests the same of its methods",
    "check_fit1d": A_GRAPH,
    "check_fit2d_1feature": A_GRAPH,
    "check_fit2d_1sample": A_GRAPH,
    "check_fit2d_predict1d": NO_METHOD,
    "check_fit_idempotent": NO_METHOD + "; test_estimator.py tests the same of its methods",
    "check_fit_non_negative": "negative attributes are allowed",
    "check_get_feature_names_out_error": ANOTHER_KIND,
    "check_global_output_transform_pandas": ANOTHER_KIND,
    "check_global_set_output_transform_polars": ANOTHER_KIND,
    "check_inplace_ensure_writeable": "BGCL has no setting that lets it change its input",
    "check_is_fitted": "it is not a check of estimators; test_estimator.py calls it",
    "check_methods_sample_order_invariance": NO_METHOD,
    "check_methods_subset_invariance": NO_METHOD,
    "check_n_features_in": "there is no n_features_in_; graph_.num_attributes has the number",
    "check_n_features_in_after_fitting": "there is no n_features_in_; graph_.num_attributes has the number",
    "check_non_transformer_estimators_n_iter": "the number of epochs is a setting, so there is no n_iter_",
    "check_nonsquare_error": "the input is not a matrix of pairs",
    "check_outlier_contamination": ANOTHER_KIND,
    "check_outlier_corruption": ANOTHER_KIND,
    "check_outliers_fit_predict": ANOTHER_KIND,
    "check_outliers_train": ANOTHER_KIND,
    "check_param_validation": "bgcl.Settings checks parameters, not _parameter_constraints; see test_settings.py",
    "check_pipeline_consistency": "a pipeline starts with arrays; bgcl.downstream has a step that takes nodes",
    "check_regressor_data_not_an_array": ANOTHER_KIND,
    "check_regressor_multioutput": ANOTHER_KIND,
    "check_regressors_int": ANOTHER_KIND,
    "check_regressors_no_decision_function": ANOTHER_KIND,
    "check_regressors_train": ANOTHER_KIND,
    "check_requires_y_none": "y is ignored",
    "check_sample_weight_equivalence_on_dense_data": "fit has no sample_weight",
    "check_sample_weight_equivalence_on_sparse_data": "fit has no sample_weight",
    "check_sample_weights_list": "fit has no sample_weight",
    "check_sample_weights_not_an_array": "fit has no sample_weight",
    "check_sample_weights_not_overwritten": "fit has no sample_weight",
    "check_sample_weights_pandas_series": "fit has no sample_weight",
    "check_sample_weights_shape": "fit has no sample_weight",
    "check_set_output_transform": ANOTHER_KIND,
    "check_set_output_transform_pandas": ANOTHER_KIND,
    "check_set_output_transform_polars": ANOTHER_KIND,
    "check_sparsify_coefficients": ANOTHER_KIND,
    "check_supervised_y_2d": ANOTHER_KIND,
    "check_supervised_y_no_nan": ANOTHER_KIND,
    "check_transformer_data_not_an_array": ANOTHER_KIND,
    "check_transformer_general": ANOTHER_KIND,
    "check_transformer_get_feature_names_out": ANOTHER_KIND,
    "check_transformer_get_feature_names_out_pandas": ANOTHER_KIND,
    "check_transformer_n_iter": ANOTHER_KIND,
    "check_transformer_preserve_dtypes": ANOTHER_KIND,
    "check_transformers_unfitted": ANOTHER_KIND,
    "check_transformers_unfitted_stateless": ANOTHER_KIND,
}


class OnArrays(BGCL):
    """BGCL on an array of attributes: its rows are the nodes of a ring."""

    def fit(self, X, y=None):
        nodes = np.arange(len(X))
        edges = torch.as_tensor(np.stack([nodes, np.roll(nodes, 1)]))
        return super().fit(Data(x=torch.tensor(np.asarray(X)), edge_index=edges), y, progress=False)


def run(name: str, model: BGCL) -> None:
    check = getattr(estimator_checks, name, None)
    if check is None:
        pytest.skip("this version of scikit-learn does not have the check")
    check(type(model).__name__, model)


@pytest.mark.parametrize("name", WITHOUT_DATA)
@pytest.mark.parametrize(
    "settings", [{}, {"preset": "paper-cora", "tau": 0.5, "drop": ["edges", "entries at 0.2"]}], ids=str
)
def test_scikit_learns_check(name, settings):
    run(name, BGCL(**settings))


@pytest.mark.parametrize("name", ON_ARRAYS)
@pytest.mark.parametrize("encoder", ["gcn", "mlp"])
def test_scikit_learns_check_of_fit(name, encoder):
    run(name, OnArrays(encoder=encoder, widths=(4, 3), epochs=1, **{"part_width": 3} if encoder == "mlp" else {}))


@pytest.mark.skipif(not sklearn.__version__.startswith("1.9."), reason="the lists are for scikit-learn 1.9")
def test_every_check_of_scikit_learn_is_run_or_has_a_reason():
    known = [*WITHOUT_DATA, *ON_ARRAYS, *CANNOT_APPLY]
    assert len(known) == len(set(known))
    assert {name for name in vars(estimator_checks) if name.startswith("check_")} == set(known)
