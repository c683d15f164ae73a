# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Answers at little cost: findings to codes, and one value for each variable; the compiled twin of `pure.answers`."""

cimport cython
cimport numpy as cnp
from cpython.dict cimport PyDict_GetItemWithError
from cpython.object cimport PyObject, PyTypeObject
from cpython.ref cimport Py_INCREF
from libc.stdint cimport int64_t

cnp.import_array()

cdef extern from *:
    """
    /* A slot is set by its descriptor: the class may refuse `setattr`. */
    static CYTHON_INLINE int bbn_put(PyObject *descriptor, PyObject *value, PyObject *item) {
        return Py_TYPE(descriptor)->tp_descr_set(descriptor, value, item);
    }
    static CYTHON_INLINE int bbn_can_put(PyObject *descriptor) {
        return Py_TYPE(descriptor)->tp_descr_set != NULL;
    }
    static CYTHON_INLINE PyObject *bbn_new(PyObject *kind) {
        return ((PyTypeObject *) kind)->tp_alloc((PyTypeObject *) kind, 0);
    }
    """
    int bbn_put(object descriptor, object value, object item) except -1
    bint bbn_can_put(object descriptor)
    object bbn_new(object kind)


def read_codes(tuple readers, dict findings):
    """(variable, code) of each finding; None where one is not a state. See `pure.answers.read_codes`."""
    cdef Py_ssize_t k, n = len(readers)
    cdef list pairs = []
    cdef tuple reader
    cdef PyObject* code
    if len(findings) != n:
        return None
    k = 0
    for finding in findings.values():
        reader = <tuple> readers[k]
        k += 1
        if <object> Py_type(finding) is not reader[1]:
            return None
        code = PyDict_GetItemWithError(<dict> reader[2], finding)
        if code == NULL:
            return None
        pairs.append((reader[0], <object> code))
    return pairs


def label(tuple places, cnp.ndarray codes not None):
    """Name to state of each variable; see `pure.answers.label`."""
    cdef tuple place, states
    cdef int64_t number, code, n = cnp.PyArray_SIZE(codes)
    cdef const int64_t* values
    cdef dict found = {}
    if cnp.PyArray_TYPE(codes) != cnp.NPY_INT64 or not cnp.PyArray_IS_C_CONTIGUOUS(codes):
        raise TypeError(f"expected int64 in C order, found {codes.dtype}")
    values = <const int64_t*> cnp.PyArray_DATA(codes)
    for place in places:
        number, states = place[1], place[2]
        if not 0 <= number < n or not 0 <= values[number] < len(states):
            raise IndexError(f"variable {number} has no such code")
        found[place[0]] = states[values[number]]
    return found


cdef inline PyTypeObject* Py_type(object value) noexcept:
    return (<PyObject*> value).ob_type


@cython.final
cdef class Maker:
    """Makes values of one class; see `pure.answers.Maker`."""

    cdef readonly type kind
    cdef object variables, values, log_evidence, sampling

    def __init__(self, type kind not None):
        self.kind = kind
        self.variables, self.values = kind.variables, kind.values
        self.log_evidence, self.sampling = kind.log_evidence, kind.sampling
        for slot in (self.variables, self.values, self.log_evidence, self.sampling):
            if not bbn_can_put(slot):
                raise TypeError(f"{kind.__name__} has no slots for an answer")

    cpdef one(self, variables, cnp.ndarray values, log_evidence):
        """A value with these numbers, which become read-only."""
        cnp.PyArray_CLEARFLAGS(values, cnp.NPY_ARRAY_WRITEABLE)
        made = bbn_new(self.kind)
        bbn_put(self.variables, made, variables)
        bbn_put(self.values, made, values)
        bbn_put(self.log_evidence, made, log_evidence)
        bbn_put(self.sampling, made, None)
        return made

    cpdef view(self, tuple place, cnp.ndarray flat, log_evidence):
        """A value whose numbers are ``flat[place[1]:place[2]]``; its one variable is place[0]."""
        cdef cnp.npy_intp start = place[1], stop = place[2], size = stop - start
        if cnp.PyArray_TYPE(flat) != cnp.NPY_DOUBLE or not cnp.PyArray_IS_C_CONTIGUOUS(flat):
            raise TypeError(f"expected doubles in C order, found {flat.dtype}")
        if not 0 <= start <= stop <= cnp.PyArray_SIZE(flat):
            raise ValueError(f"no cells from {start} to {stop} in {cnp.PyArray_SIZE(flat)}")
        cdef double* data = <double*> cnp.PyArray_DATA(flat)
        cdef cnp.ndarray part = cnp.PyArray_SimpleNewFromData(1, &size, cnp.NPY_DOUBLE, data + start)
        Py_INCREF(flat)
        cnp.PyArray_SetBaseObject(part, flat)
        return self.one((place[0],), part, log_evidence)

    def each(self, places, cnp.ndarray flat not None, log_evidence):
        """An iterator over the views of these places."""
        return Each(self, iter(places), flat, log_evidence)


@cython.final
cdef class Each:
    """The values one after the other, each made when it is its turn."""

    cdef Maker maker
    cdef object places, log_evidence
    cdef cnp.ndarray flat

    def __init__(self, Maker maker, places, cnp.ndarray flat, log_evidence):
        self.maker, self.places, self.flat, self.log_evidence = maker, places, flat, log_evidence

    def __iter__(self):
        return self

    def __next__(self):
        return self.maker.view(next(self.places), self.flat, self.log_evidence)
