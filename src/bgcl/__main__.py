from bgcl.cli import main

if __name__ == "__main__":  # a process that this one starts imports this module too
    main()
