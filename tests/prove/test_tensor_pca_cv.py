"""SparseTensorPCACV through scikit-learn's own checks."""

import pytest
from sklearn.utils.estimator_checks import check_estimator

from restpoint.models import SparseTensorPCACV

pytestmark = pytest.mark.prove

# Checks of scikit-learn that do not apply, and why.
EXEMPT = {
    "check_array_api_input": "runs only where SCIPY_ARRAY_API is set",
    "check_no_attributes_set_in_init": "options that are passed on are kept in one dict",
    "check_do_not_raise_errors_in_init_or_set_params": "unknown options are refused at once",
}


@pytest.mark.filterwarnings("ignore")
def test_scikit_learn_checks_apply():
    search = SparseTensorPCACV((1,), rho=[0.1], folds=2, starts=1)
    for check in check_estimator(search, on_fail=None):
        ok = check["status"] == "passed" or check["check_name"] in EXEMPT
        assert ok, f"{check['check_name']}: {check['exception']}"
