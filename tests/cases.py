"""What checks that consist of cases have in common: telling how each went, and trying a check on files made for it."""
import os
import tempfile


def tell(results):
    """Prints a case for each name and whether it was good. Returns the exit code."""
    for name, good in results.items():
        print(f"case: {name} {'ok' if good else 'failed'}")
    return 0 if all(results.values()) else 1


def tell_problems(finders, errors):
    """Calls what finds the problems of each case, a generator; an exception of `errors` is one. Returns the exit code."""
    bad = 0
    for name, find in finders.items():
        try:
            problems = list(find())
        except errors as e:
            problems = [f"{type(e).__name__}: {e}"]
        print("\n".join(problems + [f"case: {name} {'failed' if problems else 'ok'}"]))
        bad += bool(problems)
    return 1 if bad else 0


def tell_verdicts(calls, errors):
    """Calls each with a folder of its own; what is not True tells what was wrong. Returns the exit code."""
    bad = 0
    for name, call in calls.items():
        with tempfile.TemporaryDirectory() as folder:
            try:
                verdict = call(folder)
            except errors as e:
                verdict = repr(e)
        if verdict is not True:
            print(f"{name}: {verdict}")
            bad += 1
        print(f"case: {name} {'ok' if verdict is True else 'failed'}")
    return 1 if bad else 0


def problems_of(files, check):
    """What a check of a repository says of one that consists of these files, {path: text}."""
    with tempfile.TemporaryDirectory() as root:
        for path, text in files.items():
            os.makedirs(os.path.dirname(os.path.join(root, path)), exist_ok=True)
            with open(os.path.join(root, path), "w", encoding="utf-8") as f:
                f.write(text)
        return check(root)


def judge_repository(words, check, shrink, self_test, fine):
    """The main function of such a check: --self-test, --shrink, or the check alone, which says `fine` of no problems."""
    if "--self-test" in words:
        return self_test()
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    if "--shrink" in words:
        shrink(root)
    problems = check(root)
    print("\n".join(problems) or fine)
    return 1 if problems else 0
