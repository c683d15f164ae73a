"""Classifiers that follow scikit-learn's conventions; scikit-learn is imported only when one of them is used."""
